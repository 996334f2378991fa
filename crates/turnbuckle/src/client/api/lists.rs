//! Lists of tools, resources, templates and prompts: one page, or all of them with a [`Pager`].

use turnbuckle_types::{
    ListPrompts, ListPromptsResult, ListResourceTemplates, ListResourceTemplatesResult,
    ListResources, ListResourcesResult, ListTools, ListToolsResult, Method, Prompt, Raw, Resource,
    ResourceTemplate,
};

use super::{
    super::{Call, Client, Pager, Tools, call::DecodeContext},
    complete, written,
};
use crate::error::Result;

impl Client {
    /// Requests the first page of the server's tools. Their output schemas and annotations apply to
    /// calls on this connection. Dropping the future cancels it.
    #[doc(alias = "tools/list")]
    #[doc(alias = "listTools")]
    pub fn list_tools(&self) -> Call<ListToolsResult> {
        self.verb(Method::ListTools, ListTools::new(), tools).cached()
    }

    /// Returns a stream of all tools, which requests pages as needed.
    pub fn tools(&self) -> Tools {
        Pager::tools(self)
    }

    /// Requests the first page of the server's resources. Dropping the future cancels it.
    #[doc(alias = "resources/list")]
    pub fn list_resources(&self) -> Call<ListResourcesResult> {
        self.verb(Method::ListResources, ListResources::new(), |_, raw| {
            complete::<ListResourcesResult>(Method::ListResources, raw, |result| {
                result.result_type.as_ref()
            })
        })
        .cached()
    }

    /// Returns a stream of all resources, which requests pages as needed.
    pub fn resources(&self) -> Pager<Resource> {
        Pager::resources(self)
    }

    /// Requests the first page of the server's resource templates. Dropping the future cancels it.
    #[doc(alias = "resources/templates/list")]
    pub fn list_resource_templates(&self) -> Call<ListResourceTemplatesResult> {
        self.verb(Method::ListResourceTemplates, ListResourceTemplates::new(), |_, raw| {
            complete::<ListResourceTemplatesResult>(Method::ListResourceTemplates, raw, |result| {
                result.result_type.as_ref()
            })
        })
        .cached()
    }

    /// Returns a stream of all resource templates, which requests pages as needed.
    pub fn resource_templates(&self) -> Pager<ResourceTemplate> {
        Pager::templates(self)
    }

    /// Requests the first page of the server's prompts. Dropping the future cancels it.
    #[doc(alias = "prompts/list")]
    pub fn list_prompts(&self) -> Call<ListPromptsResult> {
        self.verb(Method::ListPrompts, ListPrompts::new(), |_, raw| {
            complete::<ListPromptsResult>(Method::ListPrompts, raw, |result| {
                result.result_type.as_ref()
            })
        })
        .cached()
    }

    /// Returns a stream of all prompts, which requests pages as needed.
    pub fn prompts(&self) -> Pager<Prompt> {
        Pager::prompts(self)
    }
}

fn tools(context: &DecodeContext<'_>, raw: &Raw) -> Result<ListToolsResult> {
    let page =
        complete::<ListToolsResult>(Method::ListTools, raw, |result| result.result_type.as_ref());
    #[cfg(feature = "http")]
    let page = page.map(|mut page| {
        if let Some(repeated) = &context.link.repeated {
            repeated.learn(&mut page.tools);
        }
        page
    });
    page.inspect(|page| context.link.known.learn(&page.tools, context.link.revision()))
}

macro_rules! pages {
    ($($result:ty, $method:ident, $params:ident;)+) => {
        $(
            impl Call<$result> {
                /// Requests the page at a cursor: the `next_cursor` of the page before, which is sent
                /// unchanged.
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
