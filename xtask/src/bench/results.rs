//! Measured values by scenario, candidate and metric.

use std::collections::BTreeMap;

/// Values of all rounds, and failures.
#[derive(Debug, Default)]
pub(crate) struct Results {
    values: BTreeMap<(String, String, String), Vec<f64>>,
    pub(crate) failures: Vec<String>,
}

impl Results {
    pub(crate) fn add(&mut self, scenario: &str, candidate: &str, metric: &str, value: f64) {
        let key = (scenario.to_owned(), candidate.to_owned(), metric.to_owned());
        self.values.entry(key).or_default().push(value);
    }

    /// The median of the rounds.
    pub(crate) fn median(&self, scenario: &str, candidate: &str, metric: &str) -> Option<f64> {
        let key = (scenario.to_owned(), candidate.to_owned(), metric.to_owned());
        let mut values = self.values.get(&key)?.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len().is_multiple_of(2) {
            return Some((values[middle - 1] + values[middle]) / 2.0);
        }
        Some(values[middle])
    }

    /// Adds one line of the load generator or of a driver: `metrics`, or an `error`.
    pub(crate) fn add_line(&mut self, scenario: &str, candidate: &str, line: &serde_json::Value) {
        if let Some(error) = line["error"].as_str() {
            self.failures.push(format!("{scenario} {candidate}: {error}"));
        }
        for (metric, value) in line["metrics"].as_object().into_iter().flatten() {
            let Some(value) = value.as_f64() else { continue };
            let is_fault = ["bad", "errors", "never_released"].contains(&metric.as_str());
            if is_fault && value > 0.0 {
                self.failures.push(format!("{scenario} {candidate}: {metric} is {value}"));
            }
            self.add(scenario, candidate, metric, value);
        }
    }

    /// Fails when any measurement did.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.failures.is_empty() {
            return Ok(());
        }
        Err(format!("not everything could be measured:\n{}", self.failures.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_median_of_odd_and_even_rounds() {
        let mut results = Results::default();
        for value in [3.0, 1.0, 2.0] {
            results.add("s", "c", "m", value);
        }
        assert_eq!(results.median("s", "c", "m"), Some(2.0));
        results.add("s", "c", "m", 4.0);
        assert_eq!(results.median("s", "c", "m"), Some(2.5));
        assert_eq!(results.median("s", "c", "other"), None);
    }

    #[test]
    fn wrong_answers_and_errors_are_failures() {
        let mut results = Results::default();
        results.add_line("s", "c", &json!({"metrics": {"rps": 5.0, "bad": 0.0}}));
        assert_eq!(results.check(), Ok(()));
        results.add_line("s", "c", &json!({"metrics": {"bad": 2.0}}));
        results.add_line("s", "d", &json!({"error": "no answer"}));
        let error = results.check().unwrap_err();
        assert!(error.contains("s c: bad is 2") && error.contains("s d: no answer"));
    }
}
