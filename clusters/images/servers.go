package images

import (
	"context"
	_ "embed"
	"io/fs"

	"lockcheck/clusters/engine"
)

// serversDockerfile makes the image that all recipes with a Dockerfile stand on.
//
//go:embed servers.Dockerfile
var serversDockerfile string

// serversName is the name of that image, and the value of its RecipeLabel. It is no recipe: there
// is nothing to start from it.
const serversName = "servers"

// servers returns the image in which all servers of Debian are installed, and makes it first if
// need be: packages are fetched and unpacked once, and what a recipe adds takes seconds.
func (m Maker) servers(ctx context.Context) (engine.Image, error) {
	return m.ensureDockerfile(ctx, serversName, serversDockerfile, " from Debian packages")
}

// onServers says whether the image of a recipe stands on that of all servers.
func onServers(recipe string) bool {
	_, err := fs.Stat(recipes, recipesFolder+"/"+recipe+dockerfileSuffix)
	return err == nil
}
