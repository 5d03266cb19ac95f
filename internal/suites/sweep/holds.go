package sweep

import (
	"path/filepath"

	"lockcheck/internal/suites"
)

// Holds says whether a folder holds a sweep, and not another kind of suite.
func Holds(path string) bool {
	ledger, err := suites.OpenLedger[heading, entry](filepath.Join(path, ledgerFile))
	return err == nil && ledger.Heading.Plan.Steps > 0
}
