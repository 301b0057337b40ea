//! Medians, percentiles and rates.

use std::time::Duration;

/// The middle one; of two middle ones their mean.
pub(crate) fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (_, None) => f64::NAN,
        (0, Some(upper)) => f64::midpoint(sorted[middle - 1], *upper),
        (_, Some(value)) => *value,
    }
}

/// The smallest value that is not below `percent` of them.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let sorted = sorted(values);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// How many a second.
pub(crate) fn per_second(count: u64, time: Duration) -> f64 {
    number(count) / time.as_secs_f64()
}

/// Exact below 2^32, which is more than is ever counted here.
pub(crate) fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the values are passed through, not reckoned")]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_the_mean_of_two() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 50), 100.0);
        assert_eq!(percentile(&values, 99), 198.0);
        assert_eq!(percentile(&values, 100), 200.0);
        assert_eq!(percentile(&[7.0], 1), 7.0);
    }
}
