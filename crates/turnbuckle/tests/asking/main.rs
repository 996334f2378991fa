//! What a server asks of its client, in both eras: a client that is a script sees every byte.
#![cfg(feature = "server")]

mod arguments;
mod binding;
mod by_hand;
mod legacy;
mod modern;
mod peer;
mod sampling;
mod tools;
