package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuideIsCurrent: the guide in docs is what the evidence of this program makes.
func TestGuideIsCurrent(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "guide-runs.md")
	s := newShell(t)
	s.want(s.run("guide", "--runs", runs), exitOK, "# Which lock to choose", "")
	made, err := os.ReadFile(runs)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"guide.md": s.stdout, "guide-runs.md": string(made)} {
		page, err := os.ReadFile(filepath.Join(repository, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(page) != want {
			t.Errorf("docs/%s is not current: run make guide", name)
		}
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
		s.want(s.run("guide", "collect", "--into", evidence, s.store), exitOK, "", "0 runs added, 0 in all")
	}
	s.want(s.run("guide", "--store", filepath.Join(folder, "nowhere")), exitUsage, "", "no runs are stored")
	s.want(s.run("guide", "--runs", filepath.Join(folder, "a (1).md")), exitOK, "](a%20%281%29.md#redlock-", "")
	s.want(s.run("guide", "--runs", filepath.Join(folder, "nowhere", "runs.md")), exitUsage, "", "the folder cannot be used")
	s.want(s.run("guide", "collect"), exitUsage, "", "name the folders")
	s.want(s.run("guide", "x"), exitUsage, "", "")
	s.term = true
	if s.want(s.run("guide"), exitOK, "lockcheck guide --html guide.html", ""); strings.Contains(s.stdout, "| --- |") {
		t.Errorf("a terminal gets tables of Markdown:\n%s", s.stdout)
	}
}
