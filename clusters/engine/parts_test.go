package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// TestFreeSubnet: a run must not take an address range from its machine.
func TestFreeSubnet(t *testing.T) {
	const middle = 2 * 256 // 172.30.0.0
	for _, c := range []struct {
		name  string
		taken []string
		from  int
		want  string // "" for none
	}{
		{"nothing taken", nil, middle, "172.30.0.0/24"},
		{"nothing taken, from elsewhere", nil, 77, "172.28.77.0/24"},
		{"elsewhere", []string{"10.0.0.0/8", "192.168.0.0/16"}, middle, "172.30.0.0/24"},
		{"the first", []string{"172.30.0.0/24"}, middle, "172.30.1.0/24"},
		{"one address of it", []string{"172.30.0.77/32"}, middle, "172.30.1.0/24"},
		{"half of it", []string{"172.30.0.128/25"}, middle, "172.30.1.0/24"},
		{"more than it", []string{"172.30.0.0/22"}, middle, "172.30.4.0/24"},
		{"the whole second byte", []string{"172.30.0.0/16"}, middle, "172.31.0.0/24"},
		{"the last of all", []string{"172.31.255.0/24"}, subnets - 1, "172.28.0.0/24"},
		{"beyond the last of all", nil, subnets, "172.28.0.0/24"},
		{"all but one", []string{"172.28.0.0/15", "172.31.0.0/16", "172.30.0.0/17", "172.30.128.0/18", "172.30.192.0/19", "172.30.224.0/20", "172.30.240.0/21", "172.30.248.0/22", "172.30.252.0/23", "172.30.254.0/24"}, middle, "172.30.255.0/24"},
		{"everything, as with a VPN", []string{"172.16.0.0/12"}, middle, ""},
		{"the default route of a VPN", []string{"128.0.0.0/1"}, middle, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var taken []netip.Prefix
			for _, text := range c.taken {
				taken = append(taken, netip.MustParsePrefix(text))
			}
			n, ok := freeSubnet(taken, c.from)
			if ok != (c.want != "") || ok && subnet(n).String() != c.want {
				t.Errorf("got %s, %v, want %s", subnet(n), ok, c.want)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	n := Network{Subnet: netip.MustParsePrefix("172.30.7.0/24")}
	for host, want := range map[byte]string{11: "172.30.7.11", 101: "172.30.7.101"} {
		if got := n.Address(host); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestLittleEndian: addresses are written as in /proc/net/route.
func TestLittleEndian(t *testing.T) {
	for text, want := range map[string]string{
		"0011AC": "", "zz": "", "": "", "000011AC": "172.17.0.0", "00FEA8C0": "192.168.254.0", "0000FFFF": "255.255.0.0",
	} {
		got, err := littleEndian(text)
		if (err != nil) != (want == "") || err == nil && netip.AddrFrom4(got).String() != want {
			t.Errorf("%q: got %v, %v; want %s", text, got, err, want)
		}
	}
}

// TestFollowProgress: a failure is reported with the lines before it, and only the last of them if there are
// many.
func TestFollowProgress(t *testing.T) {
	line := func(text string) string { return fmt.Sprintf("{\"stream\":%q}\n", text) }
	failed := `{"error":"exit code 7"}` + "\n"
	var many strings.Builder
	for i := range 30 {
		many.WriteString(line(fmt.Sprintf("step %d\n", i)))
	}
	for _, c := range []struct {
		name, stream     string
		failed           bool
		contain, without string
		lines            int
	}{
		{"nothing", "", false, "", "", 0},
		{"success", line("a\n") + line("b\n"), false, "", "", 2},
		{"failure", line("a\n") + failed, true, "exit code 7\na", "", 1},
		{"failure after many", many.String() + failed, true, "step 18\n", "step 17\n", 30},
		{"several lines in one message", line("a\nb\n\n  \n") + failed, true, "a\nb", "", 2},
		{"painted red", `{"stream":"\u001b[91mwarning\n\u001b[0m"}` + failed, true, "exit code 7\nwarning", "\x1b", 1},
		{"messages of another kind", `{"status":"pulling","progressDetail":{}}` + "\n", false, "", "", 0},
		{"cut off", line("a\n") + `{"stre`, true, "unexpected EOF", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			err := followProgress(strings.NewReader(c.stream), func(string) { n++ })
			if n != c.lines || (err != nil) != c.failed {
				t.Fatalf("%d lines, %v", n, err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.contain) || c.without != "" && strings.Contains(err.Error(), c.without)) {
				t.Errorf("got %q, want it with %q and without %q", err, c.contain, c.without)
			}
		})
	}
}

func TestExitString(t *testing.T) {
	for want, exit := range map[string]Exit{"exit status 0": {}, "exit status 64": {Code: 64}, "gone": {Err: errors.New("gone")}} {
		if exit.String() != want {
			t.Errorf("got %q, want %q", exit, want)
		}
	}
}

// TestDeviceMissing: a machine without FUSE is told what is missing.
func TestDeviceMissing(t *testing.T) {
	missing := t.TempDir() + "/fuse"
	if err := hasDevice(missing); err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "modprobe fuse") {
		t.Errorf("%v", err)
	}
	if err := hasDevice("/dev/null"); err != nil {
		t.Error(err)
	}
}
