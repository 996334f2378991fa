#![doc = include_str!("../README.md")]

mod call;
mod changes;
mod downstream;
mod gateway;
mod json;
mod translate;
mod upstream;

pub use gateway::Gateway;
