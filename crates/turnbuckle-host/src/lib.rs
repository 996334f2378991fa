#![doc = include_str!("../README.md")]

mod config;
mod group;

use std::pin::Pin;

pub use config::{ConfigReader, HttpConfig, McpConfig, ProcessConfig, ServerConfig};
pub use group::{
    ClientGroup, GroupCall, GroupOptions, GroupPrompt, GroupPrompts, GroupReport, GroupResources,
    GroupTool, GroupTools, Health, HealthStream, Routed, Status,
};

/// A boxed future.
type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
