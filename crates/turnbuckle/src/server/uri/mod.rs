//! Owns a stand-in until the real one is here. Does not own anything for long.
use turnbuckle_types::Raw;

use super::schema::ArgumentError;

#[derive(Clone, Debug)]
pub struct UriTemplate(String);
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextValue {
    One(String),
    Many(Vec<String>),
}
pub type Variables = Vec<(String, TextValue)>;
impl UriTemplate {
    pub fn parse(text: &str) -> Result<UriTemplate, String> {
        Ok(UriTemplate(text.into()))
    }
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.split('{').skip(1).filter_map(|rest| rest.split('}').next())
    }
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        let (before, rest) = self.0.split_once('{')?;
        let (name, after) = rest.split_once('}')?;
        let value = uri.strip_prefix(before)?.strip_suffix(after)?;
        (!value.contains('/')).then(|| vec![(name.to_owned(), TextValue::One(value.to_owned()))])
    }
    pub fn overlaps(&self, other: &UriTemplate) -> bool {
        self.0 == other.0
    }
}
pub fn as_object(values: &[(String, TextValue)]) -> Raw {
    let map: serde_json::Map<String, serde_json::Value> = values
        .iter()
        .map(|(k, v)| {
            (
                k.clone(),
                match v {
                    TextValue::One(t) => t.clone().into(),
                    TextValue::Many(l) => l.clone().into(),
                },
            )
        })
        .collect();
    serde_json::Value::Object(map).into()
}
pub fn from_text<T: serde::de::DeserializeOwned>(
    values: &[(String, TextValue)],
) -> Result<T, ArgumentError> {
    super::schema::decode_arguments(as_object(values).as_str(), None)
}
