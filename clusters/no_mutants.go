//go:build !mutants

package clusters

// mutantByName finds none: mutants are not part of what users run.
func mutantByName(string) (Spec, bool) { return Spec{}, false }
