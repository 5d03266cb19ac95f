package clusters

import (
	"net"
	"sync"
	"testing"
)

// proxy stands between a client and a server, and can hold back what they send.
type proxy struct {
	address, server string

	mu       sync.Mutex
	conns    []net.Conn
	up, down bool // data towards the server, or from it, is lost
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String(), server: server}
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); p.renew(); serving.Wait() })
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", p.server)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			if p.down { // the library would wait for minutes for its first answer
				_, _ = client.Close(), server.Close()
			}
			p.mu.Unlock()
			serving.Go(func() { p.pass(client, server, func() bool { return p.up }) })
			serving.Go(func() { p.pass(server, client, func() bool { return p.down }) })
		}
	})
	return p
}

func (p *proxy) pass(from, to net.Conn, frozen func() bool) {
	defer to.Close()
	for buffer := make([]byte, 4096); ; {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		lost := frozen()
		p.mu.Unlock()
		if lost {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) freeze(up, down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up, p.down = up, down
}

// renew closes all connections and lets new ones through.
func (p *proxy) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up, p.down = false, false
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}
