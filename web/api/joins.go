package api

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/access"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/auth"
)

// joinPath is the path at which machines redeem join tokens. It has no other authentication: the token, in the header joinHeader, is all that a machine
// has.
const (
	joinPath   = "/burano/v1/join"
	joinHeader = "X-Join-Token"
)

// joinLife is the default life of a join token.
const joinLife = time.Hour

// joinHandlers make join tokens, and let machines redeem them.
type joinHandlers struct {
	orchestrator *orchestrator.Service
	access       Access
	attempts     *auth.Attempts
	address      echo.IPExtractor
	limits       Limits
}

func (h joinHandlers) register(v1 *echo.Group) {
	const tokens = "/environments/:environment/clusters/:cluster/join-tokens"
	v1.POST(tokens, h.create, readBody(h.limits.Values))
	v1.GET(tokens, h.list)
	v1.DELETE(tokens+"/:token", h.remove)
	v1.POST("/join", h.redeem)
	v1.POST("/join/deployment", h.start)
	v1.GET("/join", h.progress)
}

// joinTokenJSON is a join token; its text is in the answer to its making only.
type joinTokenJSON struct {
	ID        string    `json:"id"`
	Token     string    `json:"token,omitempty"`
	ClusterID string    `json:"cluster_id"`
	State     string    `json:"state"`
	UserName  string    `json:"user_name"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires_at"`
	Node      string    `json:"node"`
	Address   string    `json:"address"`
	TaskID    string    `json:"task_id"`
}

func seenJoinToken(token orchestrator.JoinToken) joinTokenJSON {
	return joinTokenJSON{ID: token.ID, ClusterID: token.ClusterID, State: token.State, UserName: token.UserName, Created: token.Created.UTC(), Expires: token.Expires.UTC(),
		Node: token.Node, Address: token.Address, TaskID: token.TaskID}
}

func (h joinHandlers) create(c echo.Context) error {
	environmentID, clusterID := c.Param("environment"), c.Param("cluster")
	ctx, caller := calling(c)
	if err := h.orchestrator.Environments().MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return err
	}
	if h.access == nil {
		return fault.New(fault.NotFound, "This Burano gives no access to clusters")
	}
	var err error
	life := joinLife
	if given, _ := body(c); given != nil {
		fields, _ := given.(map[string]any)
		said := ""
		if err := text(fields, "lifetime", &said); err != nil {
			return err
		}
		if said != "" {
			if life, err = time.ParseDuration(said); err != nil {
				return fault.New(fault.Invalid, "The lifetime is %q: write it like 1h or 30m", said)
			}
		}
	}
	if err := h.access.TakesMachines(ctx, environmentID, clusterID); err != nil {
		return err
	}
	token, secret, err := h.orchestrator.Joins().CreateToken(ctx, caller, environmentID, clusterID, access.ActionJoin, life)
	if err != nil {
		return err
	}
	answer := seenJoinToken(token)
	answer.Token = secret
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, answer)
}

func (h joinHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	tokens, err := h.orchestrator.Joins().Tokens(ctx, caller, c.Param("environment"), c.Param("cluster"))
	if err != nil {
		return err
	}
	answer := make([]joinTokenJSON, len(tokens))
	for i, token := range tokens {
		answer[i] = seenJoinToken(token)
	}
	return c.JSON(http.StatusOK, struct {
		Tokens []joinTokenJSON `json:"join_tokens"`
	}{answer})
}

func (h joinHandlers) remove(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.orchestrator.Joins().DeleteToken(ctx, caller, c.Param("environment"), c.Param("cluster"), c.Param("token")); err != nil {
		return err
	}
	return empty(c)
}

// open finds the token of a request. From then on its maker is the caller, for the logs.
func (h joinHandlers) open(c echo.Context) (orchestrator.RedeemedJoin, error) {
	request := c.Request()
	if h.access == nil {
		return orchestrator.RedeemedJoin{}, fault.New(fault.NotFound, "This Burano gives no access to clusters")
	}
	if wait := h.attempts.Take(h.address(request), "join"); wait > 0 {
		return orchestrator.RedeemedJoin{}, &auth.TooMany{Wait: wait, What: "to use a join token"}
	}
	token, err := h.orchestrator.Joins().Open(request.Context(), request.Header.Get(joinHeader))
	if err != nil {
		return token, err
	}
	h.attempts.Succeeded(h.address(request), "join")
	c.SetRequest(request.WithContext(identity.With(request.Context(), token.Maker)))
	return token, nil
}

// machineJSON is a machine that is to join.
type machineJSON struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Port    int64  `json:"port"` // 22 when 0
	User    string `json:"user"` // root when ""
	HostKey string `json:"host_key"`
}

// joiningJSON is the answer to a machine with a token.
type joiningJSON struct {
	ID string `json:"id"` // the token's
	access.Joining
}

func (h joinHandlers) redeem(c echo.Context) error {
	token, err := h.open(c)
	if err != nil {
		return err
	}
	var given machineJSON
	if err := decode(c, &given); err != nil {
		return err
	}
	if err := h.orchestrator.Joins().MayRedeem(token, given.HostKey); err != nil {
		return err
	}
	ctx := c.Request().Context()
	environmentID, clusterID := token.Cluster()
	machine := store.Machine{Node: given.Name, Address: given.Address, Port: cmp.Or(given.Port, 22), Login: cmp.Or(given.User, "root"), HostKey: given.HostKey}
	joining, err := h.access.Join(ctx, environmentID, clusterID, machine)
	if err != nil {
		return err
	}
	machine.Node = joining.Node
	if err := h.orchestrator.Joins().Bind(ctx, token, machine); err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, joiningJSON{token.ID(), joining})
}

func (h joinHandlers) start(c echo.Context) error {
	token, err := h.open(c)
	if err != nil {
		return err
	}
	if err := h.orchestrator.Joins().Start(c.Request().Context(), token, access.ActionJoin, access.JoinArguments); err != nil {
		return err
	}
	return c.NoContent(http.StatusAccepted)
}

// joinProgressJSON is the progress of a machine's join.
type joinProgressJSON struct {
	Node    string         `json:"node"`
	State   string         `json:"state"`
	Reports []joinLineJSON `json:"reports"`
	Last    int64          `json:"last"`
}

type joinLineJSON struct {
	Created string `json:"created"`
	Level   string `json:"level"`
	Text    string `json:"text"`
}

func (h joinHandlers) progress(c echo.Context) error {
	token, err := h.open(c)
	if err != nil {
		return err
	}
	after := int64(0)
	if text := c.QueryParam("after"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil {
			return fault.New(fault.Invalid, "after is the number of a line, not %q", text)
		}
	}
	progress, err := h.orchestrator.Joins().Progress(c.Request().Context(), token, after)
	if err != nil {
		return err
	}
	answer := joinProgressJSON{Node: progress.Node, State: progress.State, Reports: make([]joinLineJSON, len(progress.Reports)), Last: progress.Last}
	for i, line := range progress.Reports {
		answer.Reports[i] = joinLineJSON{stamp(line.Created), line.Level, line.Text}
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, answer)
}
