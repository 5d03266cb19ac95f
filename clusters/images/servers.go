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

// serversName is the name of that image, and the value of its RecipeLabel. It is no recipe, because no server
// starts from it.
const serversName = "servers"

// servers returns the image in which all of Debian's servers are installed, and makes it if it is missing.
// Packages are fetched and unpacked once, so what a recipe adds takes seconds.
func (m Maker) servers(ctx context.Context) (engine.Image, error) {
	return m.ensureDockerfile(ctx, serversName, serversDockerfile, " from Debian packages")
}

// onServers says whether a recipe is based on the image of all servers.
func onServers(recipe string) bool {
	_, err := fs.Stat(recipes, recipesFolder+"/"+recipe+dockerfileSuffix)
	return err == nil
}
