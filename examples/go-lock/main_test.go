package main

import (
	"testing"

	"lockcheck/clients/serve/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, open) }

const about = `
servers: memory
lease: 1s
tokens: true
renew: true
`

func TestWithoutFaults(t *testing.T) {
	locktest.Run(t, about, "--nemesis", "none", "--time-limit", "10s")
}

// TestFencing: a holder that is stopped beyond the end of its lease does no damage, because the resource
// refuses its outdated token.
func TestFencing(t *testing.T) {
	locktest.Run(t, about, "--nemesis", "pause", "--guard", "fence", "--section", "200ms-300ms")
}
