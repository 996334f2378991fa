//! Owns which HTTP status an error goes with. Does not own the errors, nor the refusals that
//! HTTP makes before there is a message.

use turnbuckle_types::code;

/// The status of an answer that is this error.
///
/// Only the codes of the protocol have a status of their own, whoever gave them. Any other error
/// is an answer like a result: the exchange as such went well.
pub(crate) fn status(code: i64) -> u16 {
    match code {
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::INVALID_PARAMS
        | code::HEADER_MISMATCH
        | code::MISSING_CLIENT_CAPABILITY
        | code::UNSUPPORTED_VERSION => 400,
        code::METHOD_NOT_FOUND => 404,
        _ => 200,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: hosting:http:modern:handler-error-status-via-table
    // req: hosting:http:modern:envelope-missing-key-status-400
    #[test]
    fn each_code_of_the_protocol_has_its_status() {
        for code in [-32700, -32600, -32602, -32020, -32021, -32022] {
            assert_eq!(status(code), 400, "{code}");
        }
        assert_eq!(status(-32601), 404);
        for code in [-32603, 7, -32800] {
            assert_eq!(status(code), 200, "{code}");
        }
    }
}
