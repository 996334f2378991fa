//! The examples of the RFCs.

use serde_json::{Value, json};

use super::{
    KeySet, dpop,
    jwt::{self, Rejected},
    public::PublicKey,
};

const JOE: &str =
    "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";

/// The payload of each example in RFC 7515 appendix A.
const PAYLOAD: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9p\
                       c19yb290Ijp0cnVlfQ";

fn keys(jwk: Value) -> KeySet {
    KeySet::read(json!({ "keys": [jwk] }).to_string().as_bytes()).unwrap()
}

fn thumbprint(jwk: Value) -> String {
    PublicKey::from_jwk(jwk.as_object().unwrap()).unwrap().thumbprint()
}

#[test]
fn rfc_7515_a_1_a_shared_secret_is_refused() {
    let token = format!(
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.{PAYLOAD}.\
         dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    );
    let secret = json!({"kty": "oct", "k": "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-\
                        1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"});
    assert_eq!(jwt::open(&token, &keys(secret)).unwrap_err(), Rejected::Algorithm);
}

#[test]
fn rfc_7515_a_2_rs256() {
    let key = json!({"kty": "RSA", "e": "AQAB", "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9\
        k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b3\
        2690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2Ca\
        pHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2e\
        thFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"});
    let token = format!(
        "eyJhbGciOiJSUzI1NiJ9.{PAYLOAD}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj\
         5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLg\
         rnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOk\
         HWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0\
         igcN_IoypGlUPQGe77Rw"
    );
    assert_eq!(jwt::open(&token, &keys(key)).unwrap().payload, JOE.as_bytes());
}

#[test]
fn rfc_7515_a_3_es256() {
    let key = json!({"kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"});
    let token = format!(
        "eyJhbGciOiJFUzI1NiJ9.{PAYLOAD}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa\
         8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    );
    assert_eq!(jwt::open(&token, &keys(key)).unwrap().payload, JOE.as_bytes());
}

/// The key of RFC 7520 §3.3.
fn hobbiton_key() -> Value {
    json!({"kty": "RSA", "kid": "bilbo.baggins@hobbiton.example", "use": "sig",
        "e": "AQAB", "n": "n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvN\
        d7nqQ0VEiZQHz_AJmSCpMaJMRBSFKrKb2wqVwGU_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6\
        Aj-oBHqFEHYpPe7Tpe-OfVfHd1E6cS6M1FZcD1NNLYD5lFHpPI9bTwJlsde3uhGqC0ZCuEHg8lhzwOHrtIQbS0FVbb\
        9k3-tVTU4fg_3L_vniUFAKwuCLqKnS2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuaxwUkRz5iaiQkqgc5gHdrNP5zw"})
}

/// The payload of each example in RFC 7520 §4.
const FRODO: &str = "SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0\
    ZXAgb250byB0aGUgcm9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5v\
    IGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4";

#[test]
fn rfc_7520_4_1_rs256() {
    let mut key = hobbiton_key();
    let token = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9.SXTigJlzIG\
        EgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGU\
        gcm9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUg\
        eW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4.MRjdkly7_-oTPTS3AXP41iQIGKa80A0ZmTuV5MEaHoxnW2e5CZ5NlK\
        tainoFmKZopdHM1O2U4mwzJdQx996ivp83xuglII7PNDi84wnB-BDkoBwA78185hX-Es4JIwmDLJK3lfWRa-XtL0Rn\
        ltuYv746iYTh_qHRD68BNt1uSNCrUCTJDt5aAE6x8wW1Kt9eRo4QPocSadnHXFxnt8Is9UzpERV0ePPQdLuW3IS_de\
        3xyIrDaLGdjluPxUAhb6L2aXic1U12podGU0KLUQSE_oI-ZnmKJ3F4uOZDnd6QZWJushZ41Axf_fcIe8u9ipH84ogo\
        ree7vjbU5y18kDquDg";
    let opened = jwt::open(token, &keys(key.clone())).unwrap();
    assert!(opened.payload.starts_with("It\u{2019}s a dangerous business, Frodo".as_bytes()));
    key["kid"] = json!("frodo.baggins@hobbiton.example");
    assert_eq!(jwt::open(token, &keys(key)).unwrap_err(), Rejected::UnknownKey);
}

/// RFC 7520 §4.2 to §4.4 and RFC 7515 A.4 use algorithms that are not known here, and are refused by name.
#[test]
fn rfc_7520_4_2_to_4_4_other_algorithms_are_refused() {
    let ps384 = "eyJhbGciOiJQUzM4NCIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9";
    let ps384_signature = "cu22eBqkYDKgIlTpzDXGvaFfz6WGoz7fUDcfT0kkOy42miAh2qyBzk1xEsnk2IpN6-tPid6VrklHkqsGqDqH\
        CdP6O8TTB5dDDItllVo6_1OLPpcbUrhiUSMxbbXUvdvWXzg-UD8biiReQFlfz28zGWVsdiNAUf8ZnyPEgVFn\
        442ZdNqiVJRmBqrYRXe8P_ijQ7p8Vdz0TTrxUeT3lm8d9shnr2lfJT8ImUjvAA2Xez2Mlp8cBE5awDzT0qI0\
        n6uiP1aCN_2_jLAeQTlqRHtfa64QQSUmFAAjVKPbByi7xho0uTOcbH510a6GYmJUAfmWjwZ6oD4ifKo8DYM-\
        X72Eaw";
    let es512 = "eyJhbGciOiJFUzUxMiIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9";
    let es512_signature = "AE_R_YZCChjn4791jSQCrdPZCNYqHXCTZH0-JZGYNlaAjP2kqaluUIIUnC9qvbu9Plon7KRTzoNEuT4Va2cm\
        L1eJAQy3mtPBu_u_sDDyYjnAMDxXPn7XrT0lw-kvAD890jl8e2puQens_IEKBpHABlsbEPX6sFY8OcGDqoRu\
        Bomu9xQ2";
    let hs256 = "eyJhbGciOiJIUzI1NiIsImtpZCI6IjAxOGMwYWU1LTRkOWItNDcxYi1iZmQ2LWVlZjMxNGJjNzAzNyJ9";
    let hs256_signature = "s0h6KThzkfBBBkLspW1h84VsJZFTsPPqMDA7g1Md7p0";
    for token in [
        format!("{ps384}.{FRODO}.{ps384_signature}"),
        format!("{es512}.{FRODO}.{es512_signature}"),
        format!("{hs256}.{FRODO}.{hs256_signature}"),
        // RFC 7520 §4.5: the content is elsewhere.
        format!("{hs256}..{hs256_signature}"),
        // RFC 7515 A.4.
        "eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA.AAAA".to_owned(),
    ] {
        let refused = jwt::open(&token, &keys(hobbiton_key())).unwrap_err();
        assert_eq!(refused, Rejected::Algorithm, "{token}");
    }
}

/// The first of three signatures over one payload stands as a token, too.
#[test]
fn rfc_7520_4_8_one_of_several_signatures() {
    let signature = "MIsjqtVlOpa71KE-Mss8_Nq2YH4FGhiocsqrgi5NvyG53uoimic1tcMdSg-qptrzZc7CG6Svw2Y13TDIqHzT\
        UrL_lR2ZFcryNFiHkSw129EghGpwkpxaTn_THJTCglNbADko1MZBCdwzJxwqZc-1RlpO2HibUYyXSwO97BSe\
        0_evZKdjvvKSgsIqjytKSeAMbhMBdMma622_BG5t4sdbuCHtFjp9iJmkio47AIwqkZV1aIZsv33uPUqBBCXb\
        YoQJwt7mxPftHmNlGoOSMxR_3thmXTCm4US-xiNOyhbm8afKK64jU6_TPtQHiJeQJxz9G3Tx-083B745_AfY\
        OnlC9w";
    let token = format!("eyJhbGciOiJSUzI1NiJ9.{FRODO}.{signature}");
    let opened = jwt::open(&token, &keys(hobbiton_key())).unwrap();
    assert!(opened.payload.ends_with(b"swept off to."));
    // The content is elsewhere, as in §4.5.
    let detached = format!("eyJhbGciOiJSUzI1NiJ9..{signature}");
    let refused = jwt::open(&detached, &keys(hobbiton_key())).unwrap_err();
    assert_eq!(refused, Rejected::UnknownKey);
    // RFC 7515 §7.2 and RFC 7520 §4.6 to §4.8: JSON is no token.
    let protected = "eyJhbGciOiJSUzI1NiJ9";
    let member = json!({"protected": protected, "signature": signature});
    let mut flattened = member.clone();
    flattened["payload"] = json!(FRODO);
    for text in [json!({"payload": FRODO, "signatures": [member]}), flattened] {
        let refused = jwt::open(&text.to_string(), &keys(hobbiton_key())).unwrap_err();
        assert_eq!(refused, Rejected::Malformed);
    }
}

#[test]
fn rfc_7515_c_base64url() {
    let bytes = [3, 236, 255, 224, 193];
    assert_eq!(super::encode(bytes), "A-z_4ME");
    assert_eq!(super::decode("A-z_4ME").as_deref(), Some(&bytes[..]));
    for text in ["A-z_4ME=", "A+z/4ME", "A-z_4MF", "A-z_4M E", "A-z_4"] {
        assert_eq!(super::decode(text), None, "{text}");
    }
}

#[test]
fn rfc_7515_e_an_unknown_critical_header_is_refused() {
    let token = "eyJhbGciOiJub25lIiwNCiAiY3JpdCI6WyJodHRwOi8vZXhhbXBsZS5jb20vVU5ERUZJTkVEIl0sDQogImh0\
                 dHA6Ly9leGFtcGxlLmNvbS9VTkRFRklORUQiOnRydWUNCn0.RkFJTA.";
    assert_eq!(jwt::open(token, &KeySet::default()).unwrap_err(), Rejected::Algorithm);
}

#[test]
fn rfc_7515_a_5_unsecured_is_refused() {
    let token = format!("eyJhbGciOiJub25lIn0.{PAYLOAD}.");
    assert_eq!(jwt::open(&token, &KeySet::default()).unwrap_err(), Rejected::Algorithm);
}

fn rfc_8037_key() -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
}

#[test]
fn rfc_8037_a_3_thumbprint() {
    assert_eq!(thumbprint(rfc_8037_key()), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

#[test]
fn rfc_8037_a_5_eddsa() {
    let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPO\
                 t7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let opened = jwt::open(token, &keys(rfc_8037_key())).unwrap();
    assert_eq!(opened.payload, b"Example of Ed25519 signing");
}

#[test]
fn rfc_7638_3_1_thumbprint() {
    let key = json!({"kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc\
        _BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_F\
        DW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vM\
        QFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"});
    assert_eq!(thumbprint(key), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
}

/// RFC 9449 §4.1 and §7.1.
const PROOF_HEADER: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoU\
     klDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWcl\
     UwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19";

fn expected<'a>(method: &'a str, url: &'a str) -> dpop::ExpectedProof<'a> {
    dpop::ExpectedProof {
        method,
        url,
        access_token: None,
        thumbprint: Some("0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"),
        nonces: None,
        now: 1_562_262_620,
        oldest: 60,
        skew: 0,
    }
}

#[test]
fn rfc_9449_4_1_proof_for_a_token_request() {
    let proof = format!(
        "{PROOF_HEADER}.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2\
         VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8ig\
         iMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
    );
    let expected = expected("POST", "https://server.example.com/token");
    dpop::check(&proof, &expected, &dpop::Replays::new(1)).unwrap();
}

#[test]
fn rfc_9449_7_1_proof_for_a_token() {
    let proof = format!(
        "{PROOF_HEADER}.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZX\
         NvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8\
         ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPP\
         ToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA"
    );
    let mut expected = expected("GET", "https://resource.example.org/protectedresource");
    expected.access_token = Some("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
    dpop::check(&proof, &expected, &dpop::Replays::new(1)).unwrap();
}
