package swarm

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestArchive(t *testing.T) {
	source := t.TempDir()
	for name, content := range map[string]string{"lock.yaml": "a", "sub/client.py": "b"} {
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	err := pack(&archive, map[string]string{"locks/mine": source, "suite.yaml": filepath.Join(source, "lock.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "new")
	if err := unpack(&archive, target); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"locks/mine/lock.yaml": "a", "locks/mine/sub/client.py": "b", "suite.yaml": "a"} {
		got, err := os.ReadFile(filepath.Join(target, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(target, "locks/mine/sub/client.py")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a program can no longer be run: %v, %v", info.Mode(), err)
	}
	if _, err := os.Lstat(filepath.Join(target, "locks/mine/link")); err == nil {
		t.Error("a link is taken along")
	}
}

// TestUnpackOutside: an archive from another machine cannot write outside its folder.
func TestUnpackOutside(t *testing.T) {
	for _, header := range []tar.Header{
		{Name: "../outside", Typeflag: tar.TypeReg}, {Name: "/tmp/lockcheck-outside", Typeflag: tar.TypeReg},
		{Name: "link", Linkname: "/etc", Typeflag: tar.TypeSymlink}, {Name: "device", Typeflag: tar.TypeChar},
	} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(t.TempDir(), "in")
		if err := unpack(&archive, folder); err == nil {
			t.Errorf("%s is taken", header.Name)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(folder), "outside")); err == nil {
			t.Errorf("%s was written", header.Name)
		}
	}
}

func TestUnpackCutOff(t *testing.T) {
	var archive bytes.Buffer
	if err := pack(&archive, map[string]string{"a": os.Args[0]}); err != nil {
		t.Fatal(err)
	}
	archive.Truncate(archive.Len() / 2)
	if err := unpack(&archive, filepath.Join(t.TempDir(), "in")); err == nil {
		t.Error("half of an archive is taken")
	}
}
