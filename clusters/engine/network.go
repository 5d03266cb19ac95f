package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/docker/docker/api/types/network"
)

// Network is a bridge of a run, with no way out of the machine.
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

// CreateNetwork makes a network on a subnet that neither another network of the
// engine nor a route of this machine uses.
func (e *Engine) CreateNetwork(ctx context.Context, name string, labels map[string]string) (Network, error) {
	taken, err := e.takenSubnets(ctx)
	if err != nil {
		return Network{}, err
	}
	making, cancel, err := making(ctx)
	if err != nil {
		return Network{}, err
	}
	defer cancel()
	var refused error
	for _, subnet := range candidates(taken) {
		_, err := e.api.NetworkCreate(making, name, network.CreateOptions{
			Driver: "bridge", Internal: true, Labels: labels,
			IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet.String()}}},
		})
		if err == nil {
			return Network{Name: name, Subnet: subnet}, nil
		}
		// Another run may have taken the subnet since.
		refused = err
		if ctx.Err() != nil {
			break
		}
	}
	if refused == nil {
		refused = errors.New("no free subnet")
	}
	return Network{}, fmt.Errorf("network %s: %w", name, refused)
}

// subnetAttempts bounds how many free subnets are tried.
const subnetAttempts = 8

// candidates lists some subnets that overlap with no taken one.
func candidates(taken []netip.Prefix) []netip.Prefix {
	var free []netip.Prefix
	for _, second := range []byte{30, 31, 29, 28} {
		for third := range 256 {
			subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, second, byte(third), 0}), 24)
			if !overlaps(subnet, taken) {
				free = append(free, subnet)
			}
			if len(free) == subnetAttempts {
				return free
			}
		}
	}
	return free
}

func overlaps(subnet netip.Prefix, others []netip.Prefix) bool {
	for _, other := range others {
		if subnet.Overlaps(other) {
			return true
		}
	}
	return false
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
	return append(append(taken, interfaceSubnets()...), routes()...), nil
}

// interfaceSubnets lists the subnets of this machine's interfaces.
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

// routes lists the destinations in this machine's IPv4 routing table, the
// default route excepted. A machine without such a table has none.
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
