//! Owns the verbs that ask for one page of a list. Does not own going through all of them: `listed`
//! does.

use turnbuckle_types::{
    ListPrompts, ListPromptsResult, ListResourceTemplates, ListResourceTemplatesResult,
    ListResources, ListResourcesResult, ListTools, ListToolsResult, Method, Prompt, Raw, Resource,
    ResourceTemplate,
};

use super::{
    super::{Call, Client, Pager, Tools, call::Told},
    complete, written,
};
use crate::error::Result;

impl Client {
    /// Asks for the first page of the server's tools. What it says of their output and of calling
    /// them twice is remembered for as long as this connection lasts. Dropping the future cancels
    /// it.
    pub fn list_tools(&self) -> Call<ListToolsResult> {
        self.verb(Method::ListTools, ListTools::new(), tools).cached()
    }

    /// All tools of the server, page by page as they are asked for.
    pub fn tools(&self) -> Tools {
        Pager::tools(self)
    }

    /// Asks for the first page of the server's resources. Dropping the future cancels it.
    pub fn list_resources(&self) -> Call<ListResourcesResult> {
        self.verb(Method::ListResources, ListResources::new(), |_, raw| {
            complete::<ListResourcesResult>(Method::ListResources, raw, |result| {
                result.result_type.as_ref()
            })
        })
        .cached()
    }

    /// All resources of the server, page by page as they are asked for.
    pub fn resources(&self) -> Pager<Resource> {
        Pager::resources(self)
    }

    /// Asks for the first page of the server's resource templates. Dropping the future cancels it.
    pub fn list_resource_templates(&self) -> Call<ListResourceTemplatesResult> {
        self.verb(Method::ListResourceTemplates, ListResourceTemplates::new(), |_, raw| {
            complete::<ListResourceTemplatesResult>(Method::ListResourceTemplates, raw, |result| {
                result.result_type.as_ref()
            })
        })
        .cached()
    }

    /// All resource templates of the server, page by page as they are asked for.
    pub fn resource_templates(&self) -> Pager<ResourceTemplate> {
        Pager::templates(self)
    }

    /// Asks for the first page of the server's prompts. Dropping the future cancels it.
    pub fn list_prompts(&self) -> Call<ListPromptsResult> {
        self.verb(Method::ListPrompts, ListPrompts::new(), |_, raw| {
            complete::<ListPromptsResult>(Method::ListPrompts, raw, |result| {
                result.result_type.as_ref()
            })
        })
        .cached()
    }

    /// All prompts of the server, page by page as they are asked for.
    pub fn prompts(&self) -> Pager<Prompt> {
        Pager::prompts(self)
    }
}

fn tools(told: &Told<'_>, raw: &Raw) -> Result<ListToolsResult> {
    let page =
        complete::<ListToolsResult>(Method::ListTools, raw, |result| result.result_type.as_ref());
    #[cfg(feature = "http")]
    let page = page.map(|mut page| {
        if let Some(repeated) = &told.link.repeated {
            repeated.learn(&mut page.tools);
        }
        page
    });
    page.inspect(|page| told.link.known.learn(&page.tools, told.link.revision()))
}

/// Pages other than the first.
macro_rules! pages {
    ($($result:ty, $method:ident, $params:ident;)+) => {
        $(
            impl Call<$result> {
                /// Asks for the page that begins where another ended, by its `next_cursor`, which
                /// is sent as it came.
                pub fn cursor(self, cursor: impl Into<String>) -> Call<$result> {
                    let mut params = $params::new();
                    params.cursor = Some(cursor.into());
                    self.with_params(written(Method::$method, params))
                }
            }
        )+
    };
}

pages! {
    ListToolsResult, ListTools, ListTools;
    ListResourcesResult, ListResources, ListResources;
    ListResourceTemplatesResult, ListResourceTemplates, ListResourceTemplates;
    ListPromptsResult, ListPrompts, ListPrompts;
}
