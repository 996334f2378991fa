//! Owns what the handlers of prompts and completers can return. Does not own what failures become.

use turnbuckle_types::{Completion, GetPromptResult, PromptMessage};

use super::{Failure, IntoReply};
use crate::server::handler::context::Ctx;

macro_rules! replies {
    ($result:ty; $($kind:ty: |$value:ident| $made:expr;)*) => {$(
        impl IntoReply<$result> for $kind {
            async fn into_reply(self, _: &Ctx) -> Result<$result, Failure> {
                let $value = self;
                Ok($made)
            }
        }
    )*};
}

replies! {
    GetPromptResult;
    GetPromptResult: |result| result;
    PromptMessage: |message| GetPromptResult::new([message]);
    Vec<PromptMessage>: |messages| GetPromptResult::new(messages);
    String: |text| GetPromptResult::new([PromptMessage::user(text)]);
    &'static str: |text| GetPromptResult::new([PromptMessage::user(text)]);
}

replies! {
    Completion;
    Completion: |completion| completion;
    Vec<String>: |values| Completion::new(values);
    Vec<&'static str>: |values| Completion::new(owned(values));
}

impl<const N: usize> IntoReply<GetPromptResult> for [PromptMessage; N] {
    async fn into_reply(self, _: &Ctx) -> Result<GetPromptResult, Failure> {
        Ok(GetPromptResult::new(self))
    }
}

fn owned(values: Vec<&'static str>) -> Vec<String> {
    values.into_iter().map(str::to_owned).collect()
}
