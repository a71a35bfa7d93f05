//! Graphs of bars.

/// The width of a bar and of the gap after it.
const STEP: u32 = 10;
const BAR: u32 = 8;
/// The height of the graph.
const HEIGHT: u32 = 96;

/// A bar: its left edge, its top, its width and its height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
}

/// Bars of equal width, the highest of which has the height of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bars {
    /// The size in which the bars are given.
    pub width: u32,
    pub height: u32,
    /// The bars of the values above 0.
    pub bars: Vec<Bar>,
}

impl Bars {
    pub fn new(values: &[u64]) -> Self {
        let most = values.iter().copied().max().unwrap_or_default().max(1);
        let bar = |(place, value): (u32, &u64)| {
            let height = u128::from(*value) * u128::from(HEIGHT) / u128::from(most);
            // A value above 0 is always visible.
            let height = u32::try_from(height).unwrap_or(HEIGHT).max(2);
            (*value > 0).then_some(Bar { x: place * STEP, y: HEIGHT - height, width: BAR, height })
        };
        let bars = (0..).zip(values).filter_map(bar).collect();
        let width = u32::try_from(values.len()).unwrap_or_default() * STEP;
        Self { width, height: HEIGHT, bars }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_fills_the_graph_and_the_lowest_is_visible() {
        let shape = |values: &[u64]| -> Vec<_> {
            Bars::new(values).bars.iter().map(|bar| (bar.x, bar.y, bar.height)).collect()
        };
        assert_eq!(shape(&[0, 50, 100, 1]), [(10, 48, 48), (20, 0, 96), (30, 94, 2)]);
        assert_eq!(shape(&[u64::MAX]), [(0, 0, 96)]);
        assert_eq!((shape(&[0, 0]), Bars::new(&[]).width), (vec![], 0));
    }
}
