package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
)

// Network is the bridge network of a run. It has no route out of the machine.
type Network struct {
	Name   string
	Subnet netip.Prefix
}

// Address returns the n-th address of the network.
func (n Network) Address(host byte) string {
	four := n.Subnet.Addr().As4()
	four[3] = host
	return netip.AddrFrom4(four).String()
}

// CreateNetwork makes a network on a subnet that neither another network of the engine nor a route of this
// machine uses. The search begins at a hash of the name, so runs that start together seldom want the same
// subnet.
func (e *Engine) CreateNetwork(ctx context.Context, name string, labels map[string]string) (Network, error) {
	made, err := e.createNetwork(ctx, name, labels)
	if err != nil {
		return Network{}, fmt.Errorf("network %s: %w", name, err)
	}
	return made, nil
}

func (e *Engine) createNetwork(ctx context.Context, name string, labels map[string]string) (Network, error) {
	making, cancel, err := e.creationContext(ctx)
	if err != nil {
		return Network{}, err
	}
	defer cancel()
	at := firstSubnet(name)
	for attempt := 1; ; attempt++ {
		taken, err := e.takenSubnets(making)
		if err != nil {
			return Network{}, err
		}
		free, ok := freeSubnet(taken, at)
		if !ok {
			return Network{}, errNoSubnet
		}
		_, err = e.api.NetworkCreate(making, name, network.CreateOptions{
			Driver: "bridge", Internal: true, Labels: labels,
			IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet(free).String()}}},
		})
		if err == nil {
			return Network{Name: name, Subnet: subnet(free)}, nil
		}
		// The engine reports with this error that another run has taken the subnet meanwhile.
		if !errdefs.IsPermissionDenied(err) || attempt == subnetAttempts || ctx.Err() != nil {
			return Network{}, err
		}
		at = free + 1
	}
}

const (
	// subnets is how many subnets there are. subnetAttempts bounds how many of them other runs may take while
	// this run chooses one.
	subnets        = 4 * 256
	subnetAttempts = 32
)

// subnet returns the n-th candidate subnet.
func subnet(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(28 + n/256), byte(n % 256), 0}), 24)
}

var errNoSubnet = errors.New("no free /24 in 172.28.0.0–172.31.255.0; lockcheck clean or docker network prune frees some")

// firstSubnet is the number of the subnet at which the search for a name begins.
func firstSubnet(name string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	return int(hash.Sum32() % subnets)
}

// freeSubnet finds the first subnet, counting up from a number, that overlaps no taken one.
func freeSubnet(taken []netip.Prefix, from int) (n int, ok bool) {
	for i := range subnets {
		if n := (from + i) % subnets; !slices.ContainsFunc(taken, subnet(n).Overlaps) {
			return n, true
		}
	}
	return 0, false
}

func (e *Engine) takenSubnets(ctx context.Context) ([]netip.Prefix, error) {
	networks, err := e.api.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return nil, err
	}
	var taken []netip.Prefix
	for _, n := range networks {
		for _, config := range n.IPAM.Config {
			if prefix, err := netip.ParsePrefix(config.Subnet); err == nil {
				taken = append(taken, prefix.Masked())
			}
		}
	}
	return slices.Concat(taken, interfaceSubnets(), routes()), nil
}

func interfaceSubnets() []netip.Prefix {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var subnets []netip.Prefix
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			subnets = append(subnets, prefix.Masked())
		}
	}
	return subnets
}

// routes lists the destinations of this machine's IPv4 routing table except the default route. It is empty on a
// machine without /proc/net/route.
func routes() []netip.Prefix {
	file, err := os.Open("/proc/net/route")
	if err != nil {
		return nil
	}
	defer file.Close()
	var found []netip.Prefix
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// Interface, destination, gateway, flags, 3 counters, mask, …
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 {
			continue
		}
		destination, err := littleEndian(fields[1])
		mask, maskErr := littleEndian(fields[7])
		if err != nil || maskErr != nil {
			continue
		}
		bits, _ := net.IPMask(mask[:]).Size()
		if bits > 0 {
			found = append(found, netip.PrefixFrom(netip.AddrFrom4(destination), bits))
		}
	}
	return found
}

func littleEndian(text string) (address [4]byte, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 4 {
		return address, errors.New("not an address")
	}
	binary.BigEndian.PutUint32(address[:], binary.LittleEndian.Uint32(raw))
	return address, nil
}
