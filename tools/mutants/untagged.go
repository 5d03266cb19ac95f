//go:build !mutants

// Command mutants tests lockcheck itself by mutants of the embedded lock, most of them
// wrong on purpose. It runs them under every fault that an embedded lock can have, and
// prints whether each wrong one was found guilty of what it does, and each right one of nothing.
// docs/trust.md has the last figures.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "mutants: built without mutants; use go run -tags mutants, as make mutants does")
	os.Exit(64)
}
