package cleanup

import (
	"os"
	"os/exec"
	"testing"
)

func TestOwnerText(t *testing.T) {
	me, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parseOwner(me.String()); err != nil || got != me {
		t.Errorf("%s is read as %+v, %v", me, got, err)
	}
	for _, text := range []string{"", "host", "host/boot/1/2", "host/boot/one/2/3", "host/boot/0/2/3", "host/boot/1/2/3/4"} {
		if got, err := parseOwner(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// TestOwnerDead: only an owner that has certainly ended is dead; what it left behind is removed.
func TestOwnerDead(t *testing.T) {
	me, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("/bin/true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Owner)
		want   bool
	}{
		{"this process", func(*Owner) {}, false},
		{"a process that has ended", func(o *Owner) { o.pid = child.Process.Pid }, true},
		{"the number of a living process, used again", func(o *Owner) { o.start = "1" }, true},
		{"before the machine was booted", func(o *Owner) { o.boot = "another" }, true},
		{"another container", func(o *Owner) { o.space = "pid:[1]" }, false},
		{"another container, no such process here", func(o *Owner) { o.space, o.pid = "pid:[1]", child.Process.Pid }, false},
		{"another container, before the machine was booted", func(o *Owner) { o.space, o.boot = "pid:[1]", "another" }, true},
		{"another machine", func(o *Owner) { o.host = "another" }, false},
		{"another machine that was booted", func(o *Owner) { o.host, o.boot = "another", "another" }, false},
		{"another machine, no such process here", func(o *Owner) { o.host, o.pid = "another", child.Process.Pid }, false},
	} {
		o := me
		c.change(&o)
		if got := o.dead(me); got != c.want {
			t.Errorf("%s: dead %t, want %t", c.name, got, c.want)
		}
	}
}

// TestOwnerStartTime reads the start time of this process, and of one whose name looks like the fields before
// the start time.
func TestOwnerStartTime(t *testing.T) {
	start, err := startTime(os.Getpid())
	if err != nil || !(Entry{PID: os.Getpid(), Start: start}).Runs() || (Entry{PID: os.Getpid(), Start: start + "0"}).Runs() {
		t.Errorf("start time %q, %v", start, err)
	}
	odd := t.TempDir() + "/a) S 1 2"
	if err := os.Symlink("/bin/sleep", odd); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(odd, "600")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait() // the error "signal: killed" is expected
	}()
	later, err := startTime(command.Process.Pid)
	if err != nil || len(later) < len(start) || len(later) == len(start) && later < start {
		t.Errorf("a child started at %q, %v, this process at %q", later, err, start)
	}
}
