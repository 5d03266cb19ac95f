package checker

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestCauses checks that Causes lists each cause constant once.
func TestCauses(t *testing.T) {
	var listed []string
	for _, c := range Causes() {
		if c.Name == "" || slices.Contains(listed, c.Name) {
			t.Errorf("%+v is not told apart", c)
		}
		listed = append(listed, c.Name)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "why.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, "Cause") {
			return true
		}
		value, is := spec.Values[0].(*ast.BasicLit)
		if !is {
			t.Fatalf("%s is no literal", spec.Names[0])
		}
		constants = append(constants, strings.Trim(value.Value, `"`))
		return false
	})
	if !slices.Equal(listed, constants) || len(constants) == 0 {
		t.Errorf("listed are\n%q, constants are\n%q", listed, constants)
	}
}
