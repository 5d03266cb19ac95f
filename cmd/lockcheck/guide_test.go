package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGuideIsCurrent: docs/guide.md is what the evidence of this program makes.
func TestGuideIsCurrent(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	s.want(s.run("guide"), exitOK, "# Which lock to choose", "")
	if s.stdout != string(page) {
		t.Error("docs/guide.md is not current: run make guide")
	}
}

// TestGuide: the guide as a page, and evidence that is added to a file twice is there once.
func TestGuide(t *testing.T) {
	s := newShell(t)
	folder := t.TempDir()
	page, evidence := filepath.Join(folder, "guide.html"), filepath.Join(folder, "evidence.jsonl")
	s.want(s.run("guide", "--store", s.store, "--html", page), exitOK, "page    "+page, "")
	text, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(text, []byte("Which lock to choose")) {
		t.Errorf("%.200s, %v", text, err)
	}
	for range 2 {
		s.want(s.run("guide", "collect", "--into", evidence, s.store), exitOK, "", "0 runs more, 0 in all")
	}
	s.want(s.run("guide", "--store", filepath.Join(folder, "nowhere")), exitUsage, "", "no runs are stored")
	s.want(s.run("guide", "collect"), exitUsage, "", "name the folders")
	s.want(s.run("guide", "x"), exitUsage, "", "")
}
