package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// findingHandlers answer the findings of environments.
type findingHandlers struct {
	orchestrator *orchestrator.Service
}

func (h findingHandlers) register(v1 *echo.Group) {
	v1.GET("/findings", h.ofProject)
	v1.GET("/environments/:environment/findings", h.ofEnvironment)
}

// findingJSON is a finding.
type findingJSON struct {
	ID            string       `json:"id"`
	EnvironmentID string       `json:"environment_id"`
	Duty          string       `json:"duty"`
	ObjectID      *string      `json:"object_id"` // null for the environment
	Kind          string       `json:"kind"`
	Subject       *string      `json:"subject"` // null for the object itself
	Severity      string       `json:"severity"`
	Text          string       `json:"text"`
	Mends         string       `json:"mends"`
	Remedies      []remedyJSON `json:"remedies"`
	Since         time.Time    `json:"since"`
	Closed        *time.Time   `json:"closed"` // null while it is open
	Repairs       int64        `json:"repairs"`
	DeploymentID  *string      `json:"deployment_id"` // null for none
	NextRepair    *time.Time   `json:"next_repair"`
}

// remedyJSON is a way to mend a finding, which each client words itself.
type remedyJSON struct {
	Kind string  `json:"kind"`
	Node *string `json:"node"` // null for none
}

func remediesOf(f orchestrator.Finding) []remedyJSON {
	list := []remedyJSON{}
	for _, one := range f.Remedies {
		list = append(list, remedyJSON{one.Kind, orNull(one.Node)})
	}
	return list
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// findings is the answer to both calls.
func findings(c echo.Context, list []orchestrator.Finding, next string) error {
	answer := struct {
		Findings []findingJSON `json:"findings"`
		Next     string        `json:"next_marker,omitempty"`
	}{Findings: make([]findingJSON, len(list)), Next: next}
	for i, f := range list {
		answer.Findings[i] = findingJSON{ID: f.ID, EnvironmentID: f.EnvironmentID, Duty: f.Duty, ObjectID: orNull(f.ObjectID), Kind: f.Kind, Subject: orNull(f.Subject),
			Severity: f.Severity, Text: f.Text, Mends: f.Mends, Remedies: remediesOf(f), Since: f.Since, Closed: f.Closed, Repairs: f.Repairs, DeploymentID: orNull(f.Deployment), NextRepair: f.NextRepair}
	}
	return c.JSON(http.StatusOK, answer)
}

// asked reads the requested part of the list: at most maxPage, which is many for findings.
func (h findingHandlers) asked(c echo.Context) (closed bool, page store.Page, err error) {
	page, _, err = pageOf(c)
	if page.Limit == 0 {
		page.Limit = maxPage
	}
	switch text := c.QueryParam("closed"); text {
	case "", "false":
	case "true":
		closed = true
	default:
		err = fault.New(fault.Invalid, "The parameter \"closed\" is true or false, not %q", text)
	}
	return closed, page, err
}

func (h findingHandlers) ofEnvironment(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.orchestrator.Environments().MaySee(ctx, caller, c.Param("environment")); err != nil {
		return err
	}
	closed, page, err := h.asked(c)
	if err != nil {
		return err
	}
	list, next, err := h.orchestrator.Findings().Page(ctx, caller, c.Param("environment"), closed, page)
	if err != nil {
		return err
	}
	return findings(c, list, next)
}

func (h findingHandlers) ofProject(c echo.Context) error {
	ctx, caller := calling(c)
	closed, page, err := h.asked(c)
	if err != nil {
		return err
	}
	list, next, err := h.orchestrator.Findings().ProjectPage(ctx, caller, closed, page)
	if err != nil {
		return err
	}
	return findings(c, list, next)
}
