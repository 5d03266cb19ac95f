package images

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadTable has the kinds of lines in a table of official images.
func TestReadTable(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, c := range []struct {
		name, text string
		want       []OfficialImage
		wrong      string
	}{
		{"nothing", "", nil, ""},
		{"a comment and an empty line", "# redis\n\n", nil, ""},
		{"with a digest", "redis-official docker.io/library/redis:7.4.2@" + digest + "\n", []OfficialImage{{"redis-official", "docker.io/library/redis:7.4.2", digest}}, ""},
		{"without one", "redis-official docker.io/library/redis:7.4.2", []OfficialImage{{"redis-official", "docker.io/library/redis:7.4.2", ""}}, ""},
		{"a registry with a port", "a 127.0.0.1:5000/redis:7", []OfficialImage{{"a", "127.0.0.1:5000/redis:7", ""}}, ""},
		{"no registry", "# table\nredis-official redis:7.4.2", nil, "line 2"},
		{"a namespace is none", "redis-official library/redis:7.4.2", nil, "line 1"},
		{"no image", "redis-official", nil, "line 1"},
		{"half a digest", "a docker.io/library/redis:7@sha256:abc", nil, "line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readTable("table", []byte(c.text))
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Fatalf("error %v, want %q", err, c.wrong)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestMirror: the path stays the same at another registry.
func TestMirror(t *testing.T) {
	official := OfficialImage{Name: "docker.io/library/redis:7.4.2"}
	for mirror, want := range map[string]string{
		"":                        "docker.io/library/redis",
		"127.0.0.1:5000":          "127.0.0.1:5000/library/redis",
		"mirror.example.com/hub/": "mirror.example.com/hub/library/redis",
	} {
		t.Setenv(RegistryVariable, mirror)
		if got := official.repository(); got != want {
			t.Errorf("%q: %s, want %s", mirror, got, want)
		}
	}
}

// TestOfficialTable: each recipe on an official image is in the table, and a recipe without a digest is
// refused.
func TestOfficialTable(t *testing.T) {
	all, err := OfficialImages()
	if err != nil {
		t.Fatal(err)
	}
	for _, official := range all {
		if !IsOfficial(official.Recipe) {
			t.Errorf("%s: no name for an official image", official.Recipe)
		}
		if _, err := OfficialNamed(official.Recipe); errors.As(err, new(*UnpinnedError)) != (official.Digest == "") {
			t.Errorf("%s with digest %q: %v", official.Recipe, official.Digest, err)
		}
	}
	prepared, err := fs.Glob(officialFiles, "official/*"+dockerfileSuffix)
	if err != nil || len(prepared) == 0 {
		t.Fatalf("%v, %v", prepared, err)
	}
	for _, path := range prepared {
		recipe := strings.TrimSuffix(filepath.Base(path), dockerfileSuffix)
		if !slices.ContainsFunc(all, func(o OfficialImage) bool { return o.Recipe == recipe }) {
			t.Errorf("%s is not in the table", recipe)
		}
	}
	table := filepath.Join(t.TempDir(), "none")
	t.Setenv(TableVariable, table)
	if _, err := OfficialImages(); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), TableVariable) {
		t.Errorf("a table that is not there: %v", err)
	}
}
