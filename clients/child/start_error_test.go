package child

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStartError: each reason for which a program does not start has its own words, with what to do.
func TestStartError(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("plain.py", "print()\n", 0o644)
	write("lost", "#!/no/such/interpreter -x\n", 0o755)
	write("windows", "#!/bin/sh\r\necho\r\n", 0o755)
	write("text", "echo\n", 0o755)
	for _, c := range []struct{ name, want string }{
		{"./missing", "there is no file " + filepath.Join(folder, "missing")},
		{filepath.Join(folder, "missing"), "there is no file " + filepath.Join(folder, "missing")},
		{"no-such-program-anywhere", `no folder of PATH has a program "no-such-program-anywhere"; install it`},
		{"text", `no folder of PATH has a program "text"; write ./text`},
		{"./plain.py", "is not executable; run chmod +x " + filepath.Join(folder, "plain.py")},
		{"./plain.py", "as in python3 " + filepath.Join(folder, "plain.py")},
		{"./lost", "begins with #!/no/such/interpreter -x, and there is no such interpreter"},
		{"./windows", "store the file with Unix line ends"},
		{"./text", "begin it with a line like #!/bin/sh"},
		{folder, "is a folder; name the program in it"},
	} {
		command := exec.Command(c.name)
		command.Dir = folder
		_, err := Start(command)
		var start *StartError
		if !errors.As(err, &start) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
	elsewhere := exec.Command("/bin/true")
	elsewhere.Dir = filepath.Join(folder, "nowhere")
	if _, err := Start(elsewhere); err == nil || !strings.Contains(err.Error(), "there is no folder "+elsewhere.Dir) {
		t.Errorf("in a folder that there is not: %v", err)
	}
}
