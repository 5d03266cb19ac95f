package runs

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"lockcheck/clusters"
	"lockcheck/history"
	"lockcheck/internal/application/ask"
	"lockcheck/internal/application/resource"
)

// resourcePort is the port of the resource in its container.
const resourcePort = "8080"

// startResource starts the resource, if the application has one. It runs before the programs that get its address.
func (r *appRun) startResource(ctx context.Context, cluster clusters.Cluster) (err error) {
	if !r.App.Resource {
		return nil
	}
	r.cluster = cluster
	config := resource.Config{Listen: "127.0.0.1:0", Clients: slices.Concat(r.App.Replicas, []string{history.Load})}
	if r.spec.OnDocker() {
		config.Listen = ":" + resourcePort
	}
	if r.resource, err = r.startProgram(ctx, clusters.Program{Name: history.Resource, Networked: true}, resource.Command, config); err != nil {
		return err
	}
	address, err := firstLine(ctx, r.resource)
	if err != nil {
		return err
	}
	if r.resource.IP != "" {
		address = net.JoinHostPort(r.resource.IP, resourcePort)
	}
	r.resourceAt = address
	return nil
}

// firstLine reads the first line of a program's output, the only one that is no event.
func firstLine(ctx context.Context, node *clusters.Node) (string, error) {
	output := bufio.NewReader(node.Output)
	node.Output = output
	type read struct {
		line string
		err  error
	}
	first := make(chan read, 1)
	go func() {
		line, err := output.ReadString('\n')
		first <- read{strings.TrimSpace(line), err}
	}()
	select {
	case got := <-first:
		if got.err != nil {
			return "", fmt.Errorf("%s: %w; %s", node.Name, got.err, node.Errors)
		}
		return got.line, nil
	case <-ctx.Done(): // the end of the cluster ends the reading
		return "", ctx.Err()
	}
}

// resourceOf returns the environment that tells a client where the resource is; nil without a resource.
func (t *appTest) resourceOf(client string) []string {
	if t.resourceAt == "" {
		return nil
	}
	return []string{resource.Variable + "=" + resource.URL(t.resourceAt, client)}
}

// located adds the address of the resource to a question about one of its keys.
func (t *appTest) located(q ask.Question) ask.Question {
	if q.Kind == ask.Resource {
		q.URL = resource.URL(t.resourceAt, history.Asker) + "/" + q.Text
	}
	return q
}

// withResource adds the resource to the servers that faults may target, if the app file says so.
func (t *appTest) withResource(servers []*clusters.Node, resource *clusters.Node) []*clusters.Node {
	if t.App.ResourceHittable() {
		return append(servers, resource)
	}
	return servers
}
