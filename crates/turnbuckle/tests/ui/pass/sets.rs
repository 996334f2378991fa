//! Everything that a set may be, without a warning.
#![deny(warnings, missing_docs, missing_debug_implementations, clippy::all)]

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use turnbuckle::{Args, Ctx, server::{Extension, IntoGroup, Toolset, Typed}, Server, State, tools};

/// Counts.
#[derive(Debug, Default)]
pub struct Counter<T> {
    value: AtomicI64,
    unit: T,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    amount: i64,
}

#[tools]
impl Counter<String> {
    /// A method of its own.
    pub fn value(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Count.
    #[tool(title = "Count", idempotent = false, icon = "https://example.com/count.png")]
    pub async fn add(
        &self,
        /// How far.
        #[arg(min = 1, max = 10)]
        mut amount: i64,
        ctx: Ctx,
    ) -> i64 {
        amount += i64::from(ctx.is_cancelled());
        self.value.fetch_add(amount, Ordering::Relaxed)
    }

    #[tool]
    #[deprecated]
    fn subtract(&self, Args(Amount { amount }): Args<Amount>) -> i64 {
        self.value.fetch_sub(amount, Ordering::Relaxed)
    }

    /// A name that `Arc` has as well.
    #[tool]
    async fn clone(&self, _user: Option<Extension<u8>>) -> String {
        self.unit.clone()
    }

    #[prompt]
    async fn explain(
        &self,
        #[arg(complete = Self::units)] unit: String,
        #[arg(complete = Self::styles)] style: Option<String>,
        #[arg(complete = others)] other: Option<String>,
    ) -> String {
        format!("Explain {unit} {} {}", style.unwrap_or_default(), other.unwrap_or_default())
    }

    #[resource("count://now")]
    async fn now(&self, State(prefix): State<&'static str>) -> String {
        format!("{prefix}{}", self.value())
    }

    #[cfg(any())]
    #[tool]
    async fn absent(&self, a: NoSuchType) {}

    async fn units(&self, Typed(typed): Typed) -> Vec<String> {
        vec![typed, self.unit.clone()]
    }

    async fn styles() -> Vec<&'static str> {
        vec!["plainly"]
    }
}

async fn others(Typed(typed): Typed) -> Vec<String> {
    vec![typed]
}

fn main() {
    let counter = Arc::new(Counter::<String>::default());
    let _ = counter.clone().group();
    let server = Server::new("ui", "1.0").state("now: ");
    server.clone().group(counter.clone()).check().expect("a shared value is a group");
    server.group(Counter::<String>::default().into_group()).check().expect("so is a value");
    assert_eq!(counter.value(), 0);
}
