package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
