//! A link as a QR code for a terminal, two modules to a character.
//!
//! Not here: when it is shown (`commands`).

use fast_qr::QRBuilder;

/// The white border that readers need, in modules.
const QUIET: usize = 2;

/// The code in half blocks, light on dark as most terminals are; `None` when the link is too long.
pub(crate) fn draw(link: &str) -> Option<String> {
    let code = QRBuilder::new(link).build().ok()?;
    // Outside of the code is border: light.
    let dark = |row: usize, column: usize| {
        let inside = |at: usize| at.checked_sub(QUIET).filter(|at| *at < code.size);
        match (inside(row), inside(column)) {
            (Some(row), Some(column)) => code[row][column].value(),
            (None, _) | (_, None) => false,
        }
    };
    let side = code.size + 2 * QUIET;
    let mut drawn = String::new();
    for row in (0..side).step_by(2) {
        for column in 0..side {
            let below = row + 1 >= side || dark(row + 1, column);
            drawn.push(match (dark(row, column), below) {
                (false, false) => '█',
                (false, true) => '▀',
                (true, false) => '▄',
                (true, true) => ' ',
            });
        }
        drawn.push('\n');
    }
    Some(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_square_with_a_light_border() {
        let drawn = draw("http://127.0.0.1:4780/#pair=123456").unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width));
        assert_eq!(lines.len(), width.div_ceil(2));
        assert!(lines[0].chars().all(|block| block == '█'));
        // The finder pattern in the corner: a dark frame around a light ring.
        assert!(lines[1].starts_with("██ ▄▄▄▄▄ "), "{drawn}");
    }
}
