package broker

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/burano/burano/web/client"
)

// longestDescription is Murano's limit, in characters.
const longestDescription = 256

type service struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Bindable    bool           `json:"bindable"`
	Updateable  bool           `json:"plan_updateable"`
	Retrievable bool           `json:"instances_retrievable"`
	Tags        []string       `json:"tags"`
	Metadata    map[string]any `json:"metadata"`
	Plans       []plan         `json:"plans"`
}

type plan struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// planOf is the id of the only plan of a service.
func planOf(serviceID string) string { return serviceID + "-1" }

// catalog lists the applications that the caller's project may deploy.
func (b *broker) catalog(w http.ResponseWriter, r *http.Request, api *client.Client) error {
	packages, err := api.Packages().List(r.Context(), url.Values{"type": {"Application"}, "catalog": {"true"}})
	if err != nil {
		return err
	}
	services := []service{}
	for _, one := range packages {
		description := []rune(cmp.Or(strings.TrimSpace(one.Description), one.Name))
		tags := one.Tags
		if tags == nil {
			tags = []string{}
		}
		services = append(services, service{
			ID: one.ID, Name: one.Name, Description: string(description[:min(longestDescription, len(description))]), Bindable: true, Retrievable: true, Tags: tags,
			Metadata: map[string]any{"displayName": one.Name, "providerDisplayName": one.Author},
			Plans:    []plan{{ID: planOf(one.ID), Name: "default", Description: "The application as its package makes it"}},
		})
	}
	writeJSON(w, http.StatusOK, map[string]any{"services": services})
	return nil
}

// application is the package of a service and its plan.
func application(ctx context.Context, api *client.Client, serviceID, planID string) (client.Package, error) {
	none := failure{status: http.StatusBadRequest, text: "There is no service " + serviceID + " with the plan " + planID + ": GET /v2/catalog lists what there is"}
	if serviceID == "" || planID != planOf(serviceID) {
		return client.Package{}, none
	}
	found, err := api.Packages().Get(ctx, serviceID)
	if client.IsStatus(err, http.StatusNotFound) || err == nil && (found.Type != "Application" || found.ID != serviceID) {
		return found, none
	}
	return found, err
}
