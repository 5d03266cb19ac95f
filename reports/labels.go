package reports

import "unicode/utf8"

// shelf keeps labels on one line from overlapping.
type shelf struct {
	y     int
	taken [][2]float64
}

// runeShare is the width of a character in percent of the plot, at the narrowest width that the page
// supports.
const runeShare = 1.15

// reserveLabel reserves space for a text that begins at x or, with before, ends there. If the text does not fit into
// the plot, reserveLabel uses the other side.
func (s *shelf) reserveLabel(x float64, text string, before bool) (anchor string, ok bool) {
	w := widthOf(text)
	if before && x-w >= 0 || !before && x+w > 100 {
		return "end", s.reserve(x-w, x)
	}
	return "start", s.reserve(x, x+w)
}

// reserve reserves a stretch and says whether it was free.
func (s *shelf) reserve(from, to float64) bool {
	for _, t := range s.taken {
		if from < t[1] && to > t[0] {
			return false
		}
	}
	s.taken = append(s.taken, [2]float64{from, to})
	return true
}

func widthOf(text string) float64 { return float64(utf8.RuneCountInString(text))*runeShare + 1 }

// placeInRows finds a row in which both bar and label are free, and adds a row if necessary. The row is negative if
// there are too many rows.
func placeInRows(rows *[]*shelf, top, height int, from, to float64, text string) (int, string) {
	const most = 6
	w := widthOf(text)
	anchor := "start"
	end := max(to, from+w)
	if from+w > 100 {
		anchor, from, end = "end", min(from, to-w), to
	}
	for i, s := range *rows {
		if s.reserve(from, end) {
			return i, anchor
		}
	}
	if len(*rows) == most {
		return -1, ""
	}
	*rows = append(*rows, &shelf{y: top + len(*rows)*height + 13, taken: [][2]float64{{from, end}}})
	return len(*rows) - 1, anchor
}
