//! The results: as JSON for programs, as a table for people, as Markdown for the docs.
//!
//! **Invariant**: `met` follows from the other fields alone.

use std::collections::BTreeMap;

use serde::Serialize;

use super::machine::Machine;
use super::trouble::Outcome;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// What the relay was told beyond its defaults.
    pub(crate) limits: &'static str,
    pub(crate) scenarios: Vec<Figure>,
}

/// One scenario.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) floor: Option<f64>,
    /// Value over floor.
    pub(crate) ratio: Option<f64>,
    /// What the ratio is held against, or the value where there is no floor.
    pub(crate) target: f64,
    /// On which side of the target is good.
    pub(crate) good: Good,
    pub(crate) met: bool,
    /// What else was seen, by name with its unit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) details: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Good {
    AtMost,
    AtLeast,
}

impl Figure {
    pub(crate) fn new(
        (name, unit): (&'static str, &'static str),
        value: f64,
        floor: Option<f64>,
        (good, target): (Good, f64),
    ) -> Self {
        let ratio = floor.map(|floor| value / floor);
        let held = ratio.unwrap_or(value);
        let met = match good {
            Good::AtMost => held <= target,
            Good::AtLeast => held >= target,
        };
        let details = BTreeMap::new();
        Self { name, value, unit, floor, ratio, target, good, met, details }
    }

    fn cells(&self) -> [String; 6] {
        let sign = match self.good {
            Good::AtMost => "≤",
            Good::AtLeast => "≥",
        };
        let target = match self.floor {
            Some(_) => format!("{sign} {} ×", self.target),
            None => format!("{sign} {} {}", self.target, self.unit),
        };
        let details: Vec<String> =
            self.details.iter().map(|(name, value)| format!("{name} {}", short(*value))).collect();
        let met = if self.met { "yes" } else { "NO" };
        let met = [vec![met.to_owned()], details].concat().join("; ");
        [
            self.name.to_owned(),
            format!("{} {}", short(self.value), self.unit),
            self.floor.map_or("–".to_owned(), |floor| format!("{} {}", short(floor), self.unit)),
            self.ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2} ×")),
            target,
            met,
        ]
    }
}

const HEADINGS: [&str; 6] = ["scenario", "value", "floor", "ratio", "target", "met"];

impl Report {
    pub(crate) fn json(&self) -> Outcome<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(crate) fn table(&self) -> String {
        let mut rows = vec![HEADINGS.map(str::to_owned)];
        rows.extend(self.scenarios.iter().map(Figure::cells));
        let mut text = format!("{}\n{}\n\n", self.machine.line(), self.limits);
        for row in &rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let widest = rows.iter().map(|row| row[column].chars().count()).max();
                let padding = widest.unwrap_or(0) - cell.chars().count() + 2;
                line.push_str(cell);
                line.push_str(&" ".repeat(padding));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    pub(crate) fn markdown(&self) -> String {
        let row = |cells: [String; 6]| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("{}; {}.\n\n", self.machine.line(), self.limits);
        text.push_str(&row(HEADINGS.map(str::to_owned)));
        text.push_str("|---|---:|---:|---:|---:|---|\n");
        text.extend(self.scenarios.iter().map(|figure| row(figure.cells())));
        text
    }
}

/// Three or four digits that mean something.
fn short(value: f64) -> String {
    let grouped = |value: f64| {
        let digits = format!("{value:.0}");
        let mut text = String::new();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    };
    match value {
        value if value >= 1000.0 => grouped(value),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, floor: Option<f64>, good: Good, target: f64) -> Figure {
        Figure::new(("delta_hop", "µs"), value, floor, (good, target))
    }

    #[test]
    fn a_figure_with_a_floor_is_held_against_it() {
        assert!(figure(250.0, Some(100.0), Good::AtMost, 2.5).met);
        assert!(!figure(251.0, Some(100.0), Good::AtMost, 2.5).met);
        assert!(figure(20.0, Some(100.0), Good::AtLeast, 0.2).met);
        assert!(!figure(19.0, Some(100.0), Good::AtLeast, 0.2).met);
    }

    #[test]
    fn a_figure_without_a_floor_is_held_against_its_value() {
        assert!(figure(32.0, None, Good::AtMost, 32.0).met);
        assert!(!figure(32.1, None, Good::AtMost, 32.0).met);
    }

    #[test]
    fn the_json_has_the_fields_that_programs_rely_on() {
        let machine = Machine::look(std::path::Path::new("/"));
        let scenarios = vec![figure(2.0, Some(1.0), Good::AtMost, 2.5)];
        let report = Report { machine, limits: "", scenarios };
        let value: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert!(value["machine"].is_object());
        let told = value["scenarios"][0].as_object().unwrap();
        for field in ["name", "value", "unit", "floor", "ratio", "target", "met"] {
            assert!(told.contains_key(field), "{field}");
        }
    }

    #[test]
    fn numbers_are_short_enough_to_read() {
        assert_eq!(short(1_234_567.8), "1,234,568");
        assert_eq!(short(123.45), "123");
        assert_eq!(short(1.234), "1.23");
    }
}
