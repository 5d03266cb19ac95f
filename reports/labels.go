package reports

import "unicode/utf8"

// shelf keeps labels on one line from running into each other.
type shelf struct {
	y     int
	taken [][2]float64
}

// runeShare is the width of a character in percent of the plot at the narrowest
// width that the page is meant for.
const runeShare = 1.15

// put finds space for a text that begins at x, or with before ends there; the other way round where it would not fit
// into the plot.
func (s *shelf) put(x float64, text string, before bool) (anchor string, ok bool) {
	w := widthOf(text)
	if before && x-w >= 0 || !before && x+w > 100 {
		return "end", s.take(x-w, x)
	}
	return "start", s.take(x, x+w)
}

// take says whether a stretch was free.
func (s *shelf) take(from, to float64) bool {
	for _, t := range s.taken {
		if from < t[1] && to > t[0] {
			return false
		}
	}
	s.taken = append(s.taken, [2]float64{from, to})
	return true
}

func widthOf(text string) float64 { return float64(utf8.RuneCountInString(text))*runeShare + 1 }

// place finds a row in which bar and label are free, adding one if need be; the
// row is negative when there are too many.
func place(rows *[]*shelf, top, height int, from, to float64, text string) (int, string) {
	const most = 6
	w := widthOf(text)
	anchor := "start"
	end := max(to, from+w)
	if from+w > 100 {
		anchor, from, end = "end", min(from, to-w), to
	}
	for i, s := range *rows {
		if s.take(from, end) {
			return i, anchor
		}
	}
	if len(*rows) == most {
		return -1, ""
	}
	*rows = append(*rows, &shelf{y: top + len(*rows)*height + 13, taken: [][2]float64{{from, end}}})
	return len(*rows) - 1, anchor
}
