//! QR codes as paths of SVG.

use std::fmt::Write;

use app::AppError;
use qrcode::{Color, QrCode};

/// Returns the path of a text's code, one unit per module, and its width.
pub fn path_of(text: &str) -> Result<(String, usize), AppError> {
    let code = QrCode::new(text).map_err(AppError::internal)?;
    let width = code.width();
    let mut path = String::new();
    for (y, row) in code.to_colors().chunks(width).enumerate() {
        for (x, _) in row.iter().enumerate().filter(|(_, color)| **color == Color::Dark) {
            // Writing to a text never fails.
            let _ = write!(path, "M{x} {y}h1v1h-1z");
        }
    }
    Ok((path, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_address_has_the_marks_of_its_corners() {
        let (path, width) = path_of("0x52908400098527886E0F7030069857D2E4169EE7").unwrap();
        assert!(width >= 25);
        for corner in ["M0 0h1".to_owned(), format!("M{} 0h1", width - 1), format!("M0 {}h1", width - 1)] {
            assert!(path.contains(&corner), "{corner}");
        }
        // The light ring inside the first corner's mark.
        assert!(!path.contains("M1 1h1"));
    }
}
