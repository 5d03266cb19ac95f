package main

import (
	"bytes"
	"os"
	"testing"

	"lockcheck/clusters/clustertest"
)

// TestLinked: nothing in lockcheck executes a template. A template calls methods by name, so the linker would
// keep every exported method of every library.
func TestLinked(t *testing.T) {
	binary, err := os.ReadFile(clustertest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	for function, linked := range map[string]bool{"text/template.(*Template).Execute": false, "text/template.HTMLEscapeString": true} {
		if bytes.Contains(binary, []byte(function)) != linked {
			t.Errorf("%s is linked: %v, want %v", function, !linked, linked)
		}
	}
}
