//go:build !mutants

package clusters

// mutantByName finds none: mutants are not part of released builds.
func mutantByName(string) (Spec, bool) { return Spec{}, false }
