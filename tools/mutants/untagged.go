//go:build !mutants

// Command mutants tests lockcheck itself with mutants of the embedded lock, most of them wrong on purpose. It
// runs them under every fault that an embedded lock can have. It prints whether each wrong mutant was found
// guilty of what it does, and each right one of nothing. docs/trust.md has the latest figures.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "mutants: built without mutants; use go run -tags mutants, as make mutants does")
	os.Exit(64)
}
