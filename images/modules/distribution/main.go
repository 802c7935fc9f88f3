// Command registry is the registry of container images that a cluster runs for itself: distribution, with files as its storage. It is given its
// configuration, in distribution's form.
//
// Its kind of authentication "burano" has users by htpasswd (path), of whom some (pullers) may read only. When it starts it removes from its storage what
// no image has any more, which is safe then alone: nobody writes yet.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry"
	"github.com/distribution/distribution/v3/registry/auth"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/factory"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: registry CONFIGURATION")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	config, err := configuration.Parse(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := auth.Register("burano", func(options map[string]any) (auth.AccessController, error) { return newAccess(options) }); err != nil {
		return err
	}
	if err := collect(ctx, config.Storage); err != nil {
		log.Printf("what no image has any more stays until the next start: %v", err)
	}
	served, err := registry.NewRegistry(ctx, config)
	if err != nil {
		return err
	}
	return served.ListenAndServe()
}

// collect removes blobs that no manifest names.
func collect(ctx context.Context, config configuration.Storage) error {
	files, err := factory.Create(ctx, config.Type(), config.Parameters())
	if err != nil {
		return err
	}
	images, err := storage.NewRegistry(ctx, files)
	if err != nil {
		return err
	}
	var none driver.PathNotFoundError
	if _, err := files.Stat(ctx, "/docker/registry/v2/repositories"); errors.As(err, &none) {
		return nil // nothing was ever pushed
	}
	return storage.MarkAndSweep(ctx, files, images, storage.GCOpts{Quiet: true})
}

// access is htpasswd, and lets some users read only.
type access struct {
	users   auth.AccessController
	pullers []string
	realm   string
}

func newAccess(options map[string]any) (*access, error) {
	users, err := auth.GetAccessController("htpasswd", options)
	if err != nil {
		return nil, err
	}
	a := &access{users: users}
	a.realm, _ = options["realm"].(string)
	list, _ := options["pullers"].([]any)
	for _, one := range list {
		a.pullers = append(a.pullers, fmt.Sprint(one))
	}
	return a, nil
}

func (a *access) Authorized(request *http.Request, wanted ...auth.Access) (*auth.Grant, error) {
	grant, err := a.users.Authorized(request, wanted...)
	if err != nil || !slices.Contains(a.pullers, grant.User.Name) {
		return grant, err
	}
	for _, one := range wanted {
		if one.Action != "pull" {
			return nil, denied{a.realm, fmt.Sprintf("%s may pull images only", grant.User.Name)}
		}
	}
	return grant, nil
}

// denied is the answer to a user who may not do that.
type denied struct{ realm, reason string }

func (d denied) Error() string { return d.reason }

// SetHeaders has clients ask for another user.
func (d denied) SetHeaders(_ *http.Request, w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", fmt.Sprintf("Basic realm=%q", d.realm))
}
