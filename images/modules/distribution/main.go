// Command registry is a cluster's own registry of container images: distribution, with files as its storage. Its argument is its configuration, in
// distribution's form. An optional file burano.json beside it has further options.
//
// Its kind of authentication "burano" has users by htpasswd (path), of whom some (pullers) may read only. It removes data without an image from its
// storage when it starts, and once a day. It can be filled with the images of archives, and cache images of another registry for the nodes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry"
	"github.com/distribution/distribution/v3/registry/auth"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/factory"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

// options are the content of burano.json. Without the file none of this is done.
type options struct {
	// CollectAt is the daily time of collection: HH:MM, UTC. "" is only at the start.
	CollectAt string `json:"collectAt,omitempty"`
	// UntaggedDays is the number of days for which an image without tags stays; 0 is always.
	UntaggedDays int `json:"untaggedDays,omitempty"`
	// Archives is a folder of archives of images that the registry has, too; "" for none.
	Archives string `json:"archives,omitempty"`
	// Mirror is nil for none.
	Mirror *mirrorOptions `json:"mirror,omitempty"`
	// Environment has the variables of proxies.
	Environment map[string]string `json:"environment,omitempty"`
}

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
	config, own, err := read(path)
	if err != nil {
		return err
	}
	for name, value := range own.Environment {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := auth.Register("burano", func(options map[string]any) (auth.AccessController, error) { return newAccess(options) }); err != nil {
		return err
	}
	files, images, err := open(ctx, config.Storage)
	if err != nil {
		return err
	}
	if own.Archives != "" {
		if err := fill(ctx, images, own.Archives); err != nil {
			log.Printf("not all images of %s are there: %v", own.Archives, err)
		}
	}
	c := &collector{files: files, images: images, untagged: time.Duration(own.UntaggedDays) * 24 * time.Hour}
	if err := c.collect(ctx, time.Now()); err != nil {
		log.Printf("what no image has any more stays until the next time: %v", err)
	}
	if own.CollectAt != "" {
		at, err := time.Parse("15:04", own.CollectAt)
		if err != nil {
			return fmt.Errorf("collectAt is no time of the day: %w", err)
		}
		registry.RegisterHandler(func(_ *configuration.Configuration, next http.Handler) http.Handler { return c.gate.over(next) })
		go c.daily(ctx, at)
	}
	if own.Mirror != nil {
		go func() { log.Fatal(own.Mirror.serve(ctx, config.HTTP.TLS.Certificate, config.HTTP.TLS.Key)) }()
	}
	served, err := registry.NewRegistry(ctx, config)
	if err != nil {
		return err
	}
	return served.ListenAndServe()
}

func read(path string) (config *configuration.Configuration, own options, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, own, err
	}
	defer file.Close()
	if config, err = configuration.Parse(file); err != nil {
		return nil, own, fmt.Errorf("read %s: %w", path, err)
	}
	beside := filepath.Join(filepath.Dir(path), "burano.json")
	text, err := os.ReadFile(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return config, own, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", beside, err)
	}
	return config, own, err
}

// open is the registry's storage, and its images.
func open(ctx context.Context, config configuration.Storage) (driver.StorageDriver, distribution.Namespace, error) {
	files, err := factory.Create(ctx, config.Type(), config.Parameters())
	if err != nil {
		return nil, nil, err
	}
	images, err := storage.NewRegistry(ctx, files, storage.EnableDelete)
	return files, images, err
}
