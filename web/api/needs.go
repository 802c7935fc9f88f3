package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/ui"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/openstack"
)

const (
	// offerTime is how long the offer of a cloud to a project is used, and offerLimit how long the cloud may take to answer.
	offerTime  = time.Minute
	offerLimit = 10 * time.Second
	// maxOffers and maxNeeds are how many offers, and needs of packages, are remembered.
	maxOffers = 256
	maxNeeds  = 2048
)

// needHandlers compare the needs of applications with the offer of the cloud.
type needHandlers struct {
	catalog *catalog.Service
	choices choicesFunc
	log     *slog.Logger
	now     func() time.Time
	offers  *lru.Cache[string, recent]
	asking  *singleflight.Group
	needs   *knownNeeds
}

// recent is an offer, and the time until which it is used.
type recent struct {
	offer *offer
	until time.Time
}

// knownNeeds are the needs of packages by their ids. The forms of a package never change: another upload has another id.
type knownNeeds struct {
	mutex sync.Mutex
	known map[string]*ui.Needs // nil: the forms do not show them
}

func newNeedHandlers(config Config) needHandlers {
	offers, err := lru.New[string, recent](maxOffers)
	if err != nil {
		panic(err) // the size is not positive
	}
	return needHandlers{config.Catalog, config.Choices, config.Logger, time.Now, offers, &singleflight.Group{}, &knownNeeds{known: map[string]*ui.Needs{}}}
}

func (h needHandlers) register(v1 *echo.Group) { v1.GET("/needs", h.list) }

// offer is the part of a cloud that a project can use.
type offer struct {
	images     map[string]bool // types of images for servers, "" among them for an image without a type
	containers map[string]bool // names of container images
	flavors    []openstack.FlavorChoice
	quota      []openstack.QuotaChoice
}

// newOffer keeps the types and names of images: a project may have thousands of images.
func newOffer(images []openstack.ImageChoice, flavors []openstack.FlavorChoice, quota []openstack.QuotaChoice) *offer {
	made := &offer{map[string]bool{}, map[string]bool{}, flavors, quota}
	for _, one := range images {
		if openstack.IsContainerImage(one.Name) {
			made.containers[one.Name] = true
		} else {
			made.images[one.Type] = true
		}
	}
	return made
}

// hasImage reports whether servers can boot from an image of a type, or of a kind of it, as linux.kubernetes is one of linux.
func (o *offer) hasImage(wanted string) bool {
	for kind := range o.images {
		if wanted == "" || kind == wanted || strings.HasPrefix(kind, wanted+".") {
			return true
		}
	}
	return false
}

// missingJSON is an unmet need. Mends are the roles that can meet it, in the order in which to ask them.
type missingJSON struct {
	Kind  string   `json:"kind"` // image, container-image, flavor, quota
	Name  string   `json:"name"` // type of an image, name of a container image, resource of the quota; "" of a flavor
	CPUs  int64    `json:"vcpus,omitempty"`
	RAM   int64    `json:"ram,omitempty"`  // MiB
	Disk  int64    `json:"disk,omitempty"` // GiB
	Mends []string `json:"mends"`          // project, operator
}

// neededJSON is an application with its unmet needs.
type neededJSON struct {
	ID      string        `json:"id"`
	Works   *bool         `json:"works"` // null: not known
	Missing []missingJSON `json:"missing"`
}

// list answers which applications of the catalog work in the caller's project.
func (h needHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	records, _, err := h.catalog.List(ctx, catalogCaller(c), map[string][]string{"type": {"Application"}, "catalog": {"true"}, "limit": {"1000"}})
	if err != nil {
		return err
	}
	offered := h.offered(ctx, caller, c.QueryParam("region"))
	list := make([]neededJSON, len(records))
	for i, record := range records {
		list[i] = neededJSON{ID: record.ID, Missing: []missingJSON{}}
		needs := h.needsOf(ctx, catalogCaller(c), record.ID)
		if needs == nil || offered == nil {
			continue
		}
		list[i].Missing = offered.missing(*needs)
		works := len(list[i].Missing) == 0
		list[i].Works = &works
	}
	return c.JSON(http.StatusOK, struct {
		Applications []neededJSON `json:"applications"`
	}{list})
}

// needsOf are the needs of a package; nil when its forms do not show them.
func (h needHandlers) needsOf(ctx context.Context, caller identity.Caller, id string) *ui.Needs {
	h.needs.mutex.Lock()
	known, is := h.needs.known[id]
	h.needs.mutex.Unlock()
	if is {
		return known
	}
	_, definition, err := h.catalog.Forms(ctx, caller, id)
	var needs *ui.Needs
	switch kind := fault.KindOf(err); {
	case err == nil && definition.ParametersSource == "":
		if forms, err := definition.Describe(ctx, nil); err == nil {
			read := ui.NeedsOf(forms, openstack.IsContainerImage)
			needs = &read
		}
	case err != nil && kind != fault.NotFound && kind != fault.Invalid: // no forms, or bad ones, stay so
		h.log.InfoContext(ctx, "the needs of a package are not known", "package", id, "error", err)
		return nil
	}
	if ctx.Err() != nil {
		return nil
	}
	h.needs.mutex.Lock()
	defer h.needs.mutex.Unlock()
	if len(h.needs.known) >= maxNeeds {
		clear(h.needs.known)
	}
	h.needs.known[id] = needs
	return needs
}

// offered is the offer of the cloud to the caller's project; nil when the cloud does not answer.
func (h needHandlers) offered(ctx context.Context, caller identity.Caller, region string) *offer {
	if h.choices == nil {
		return nil
	}
	key := caller.ProjectID + " " + region
	if known, is := h.offers.Get(key); is && h.now().Before(known.until) {
		return known.offer
	}
	made, err, _ := h.asking.Do(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), offerLimit)
		defer cancel()
		asked, err := h.ask(ctx, caller, region)
		if err == nil {
			h.offers.Add(key, recent{asked, h.now().Add(offerTime)})
		}
		return asked, err
	})
	if err != nil {
		h.log.InfoContext(ctx, "it is not known which applications work here", "project", caller.ProjectID, "region", region, "error", err)
		return nil
	}
	return made.(*offer)
}

func (h needHandlers) ask(ctx context.Context, caller identity.Caller, region string) (*offer, error) {
	var images []openstack.ImageChoice
	var flavors []openstack.FlavorChoice
	var quota []openstack.QuotaChoice
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return choose(ctx, h.choices, caller, "images", region, &images) })
	group.Go(func() error { return choose(ctx, h.choices, caller, "flavors", region, &flavors) })
	group.Go(func() error { return choose(ctx, h.choices, caller, "quota", region, &quota) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return newOffer(images, flavors, quota), nil
}

// choose reads the choices of a kind into a list.
func choose[T any](ctx context.Context, choices choicesFunc, caller identity.Caller, kind, region string, into *[]T) error {
	list, err := choices(ctx, caller, kind, region)
	if err != nil {
		return err
	}
	found, is := list.([]T)
	if !is {
		return fmt.Errorf("the choices of %s are %T", kind, list)
	}
	*into = found
	return nil
}

// Roles that can meet a need.
const (
	mendsProject  = "project"
	mendsOperator = "operator"
)

// missing lists the unmet needs of an application.
func (o *offer) missing(needs ui.Needs) []missingJSON {
	list := []missingJSON{}
	for _, kind := range needs.Images {
		if !o.hasImage(kind) {
			list = append(list, missingJSON{Kind: "image", Name: kind, Mends: []string{mendsOperator}})
		}
	}
	for _, name := range needs.Containers {
		if !o.containers[name] {
			list = append(list, missingJSON{Kind: "container-image", Name: name, Mends: []string{mendsProject, mendsOperator}})
		}
	}
	var smallest []openstack.FlavorChoice
	for _, size := range needs.Sizes {
		fits := slices.Clone(o.flavors)
		fits = slices.DeleteFunc(fits, func(one openstack.FlavorChoice) bool {
			return int64(one.CPUs) < size.CPUs || int64(one.RAM) < size.Memory || int64(one.Disk) < size.Disk
		})
		if len(fits) == 0 {
			list = append(list, missingJSON{Kind: "flavor", CPUs: size.CPUs, RAM: size.Memory, Disk: size.Disk, Mends: []string{mendsOperator}})
			continue
		}
		smallest = append(smallest, slices.MinFunc(fits, func(a, b openstack.FlavorChoice) int {
			return cmp.Or(cmp.Compare(a.CPUs, b.CPUs), cmp.Compare(a.RAM, b.RAM))
		}))
	}
	for _, line := range o.quota {
		var more int
		for _, one := range smallest {
			more += map[string]int{"instances": 1, "cores": one.CPUs, "ram": one.RAM}[line.Resource]
		}
		if more > 0 && line.Limit >= 0 && line.Used+more > line.Limit {
			list = append(list, missingJSON{Kind: "quota", Name: line.Resource, Mends: []string{mendsProject, mendsOperator}})
		}
	}
	return list
}
