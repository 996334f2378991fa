//! The signature test vectors of Project Wycheproof, through the keys as issuers publish them.
//!
//! A key is written as a JSON web key and read back, so that the reading of keys is tested together
//! with the verification.

use serde_json::{Value, json};
use wycheproof::{TestResult, ecdsa, eddsa, rsa_pkcs1_verify, rsa_pss_verify};

use super::{Algorithm, encode, public::PublicKey};

/// Counts of vectors that were accepted and refused, so that an empty set is noticed.
#[derive(Default)]
struct Tally {
    accepted: usize,
    refused: usize,
}

impl Tally {
    fn check(
        &mut self,
        (jwk, algorithm): (&Value, Algorithm),
        (message, signature): (&[u8], &[u8]),
        (expected, name): (TestResult, String),
    ) {
        let key = PublicKey::from_jwk(jwk.as_object().unwrap()).expect("the key is read");
        let is_verified = key.verifies(algorithm, message, signature);
        match expected {
            TestResult::Valid => assert!(is_verified, "{name} is valid"),
            TestResult::Invalid => assert!(!is_verified, "{name} is invalid"),
            TestResult::Acceptable => {}
        }
        *(if is_verified { &mut self.accepted } else { &mut self.refused }) += 1;
    }

    fn finish(self, least: usize) {
        assert!(self.accepted + self.refused >= least && self.accepted > 0 && self.refused > 0);
    }
}

fn ecdsa_vectors(set: ecdsa::TestName, curve: &str, algorithm: Algorithm) {
    let mut tally = Tally::default();
    for group in ecdsa::TestSet::load(set).unwrap().test_groups {
        // The point is a 4, then both coordinates in full length.
        let (x, y) = group.key.key[1..].split_at(group.key.key.len() / 2);
        let jwk = json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y)});
        for test in group.tests {
            let name = format!("{set:?} {}: {}", test.tc_id, test.comment);
            tally.check((&jwk, algorithm), (&test.msg, &test.sig), (test.result, name));
        }
    }
    tally.finish(200);
}

#[test]
fn es256() {
    ecdsa_vectors(ecdsa::TestName::EcdsaSecp256r1Sha256P1363, "P-256", Algorithm::Es256);
}

#[test]
fn es384() {
    ecdsa_vectors(ecdsa::TestName::EcdsaSecp384r1Sha384P1363, "P-384", Algorithm::Es384);
}

#[test]
fn ed25519() {
    let mut tally = Tally::default();
    for group in eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap().test_groups {
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": encode(&group.key.pk)});
        for test in group.tests {
            let name = format!("Ed25519 {}: {}", test.tc_id, test.comment);
            tally.check((&jwk, Algorithm::EdDsa), (&test.msg, &test.sig), (test.result, name));
        }
    }
    tally.finish(100);
}

#[test]
fn rs256() {
    use rsa_pkcs1_verify::TestName;
    for set in [TestName::Rsa2048Sha256, TestName::Rsa3072Sha256, TestName::Rsa4096Sha256] {
        let mut tally = Tally::default();
        for group in rsa_pkcs1_verify::TestSet::load(set).unwrap().test_groups {
            let jwk = rsa_key(&group.key.n, &group.key.e);
            for test in group.tests {
                let name = format!("{set:?} {}: {}", test.tc_id, test.comment);
                tally.check((&jwk, Algorithm::Rs256), (&test.msg, &test.sig), (test.result, name));
            }
        }
        tally.finish(100);
    }
}

#[test]
fn ps256() {
    use rsa_pss_verify::TestName;
    // RFC 7518 §3.5: the salt is as long as the digest.
    for set in [
        TestName::RsaPss2048Sha256Mgf1SaltLen32,
        TestName::RsaPss3072Sha256Mgf1SaltLen32,
        TestName::RsaPss4096Sha256Mgf1SaltLen32,
    ] {
        let mut tally = Tally::default();
        for group in rsa_pss_verify::TestSet::load(set).unwrap().test_groups {
            let jwk = rsa_key(&group.key.n, &group.key.e);
            for test in group.tests {
                let name = format!("{set:?} {}: {}", test.tc_id, test.comment);
                tally.check((&jwk, Algorithm::Ps256), (&test.msg, &test.sig), (test.result, name));
            }
        }
        tally.finish(50);
    }
}

fn rsa_key(modulus: &[u8], exponent: &[u8]) -> Value {
    json!({"kty": "RSA", "n": encode(modulus), "e": encode(exponent)})
}
