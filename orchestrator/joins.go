package orchestrator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/store"
)

// A join token lets one machine become a node of one cluster. The machine joins with the rights of the token's maker: by a trust of its own, which ends with the
// token. The token's text is its id and a secret of 130 bits, of which a hash is stored. The machine that redeems it first, which is known by its host key, may
// try again until it has joined or the token has expired; no other may.

// How long a join token lasts.
const (
	ShortestJoin = 10 * time.Second
	LongestJoin  = 7 * 24 * time.Hour
)

// JoinToken is a caller's view of a join token.
type JoinToken struct {
	ID, ClusterID, UserName string
	Created, Expires        time.Time
	State                   string // open, redeemed, joined or expired
	Node, Address           string // of the machine that has redeemed it
	TaskID                  string // the task of its join; "" before
}

// States of a join token.
const (
	JoinOpen     = "open"
	JoinRedeemed = "redeemed" // and the machine has not joined
	JoinDone     = "joined"
	JoinExpired  = "expired"
)

// Joins lets machines outside of the cloud join clusters.
type Joins struct{ *core }

// Joins are the joins of machines outside of the cloud.
func (s *Service) Joins() Joins { return Joins{s.core} }

func (s Joins) seen(row store.JoinToken) JoinToken {
	seen := JoinToken{ID: row.ID, ClusterID: row.ClusterID, UserName: row.UserName, Created: row.Created.Time(), Expires: row.Expires.Time(), State: JoinOpen,
		Node: row.Machine.Node, Address: row.Machine.Address, TaskID: row.TaskID}
	switch {
	case row.Spent != nil:
		seen.State = JoinDone
	case s.expired(row):
		seen.State = JoinExpired
	case row.Machine.HostKey != "":
		seen.State = JoinRedeemed
	}
	return seen
}

func (s Joins) expired(row store.JoinToken) bool { return !s.now().Before(row.Expires.Time()) }

// CreateToken makes a token with which one machine joins the cluster within a time, by the given action, which the cluster must offer. No other
// answer has the text.
func (s Joins) CreateToken(ctx context.Context, caller identity.Caller, environmentID, clusterID, action string, life time.Duration) (token JoinToken, text string, err error) {
	if life < ShortestJoin || life > LongestJoin {
		return JoinToken{}, "", fault.New(fault.Invalid, "A join token lasts from %s to %s, not %s", ShortestJoin, LongestJoin, life)
	}
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return JoinToken{}, "", err
	}
	if !offers(environment.Model.Objects, clusterID, action) {
		return JoinToken{}, "", fault.New(fault.Conflict, "Object %s offers no action %s: it is no Kubernetes cluster, or one that an older Burano has deployed; deploy the environment again", clusterID, action)
	}
	delegation, err := Delegations(s).delegate(ctx, caller, environment)
	if err != nil {
		return JoinToken{}, "", err
	}
	secret := rand.Text()
	row := store.JoinToken{EnvironmentID: environmentID, ClusterID: clusterID, Hash: joinHash(secret), DelegationID: delegation.ID, UserID: caller.UserID, UserName: caller.UserName,
		Expires: store.Time(s.now().Add(life).UTC().UnixMicro())}
	if err := s.store.JoinTokens().Add(ctx, &row); err != nil {
		Delegations(s).giveBack(ctx, delegation)
		if errors.Is(err, store.ErrNotFound) {
			err = noEnvironment(environmentID)
		}
		return JoinToken{}, "", err
	}
	return s.seen(row), row.ID + "." + secret, nil
}

// Tokens lists the tokens of a cluster, oldest first: redeemable ones, and recently ended ones.
func (s Joins) Tokens(ctx context.Context, caller identity.Caller, environmentID, clusterID string) ([]JoinToken, error) {
	if err := (Environments(s)).MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return nil, err
	}
	rows, err := s.store.JoinTokens().List(ctx, environmentID, clusterID)
	tokens := make([]JoinToken, len(rows))
	for i, row := range rows {
		tokens[i] = s.seen(row)
	}
	return tokens, err
}

// DeleteToken ends a token: it cannot be redeemed any more. A machine that joins by it already goes on.
func (s Joins) DeleteToken(ctx context.Context, caller identity.Caller, environmentID, clusterID, id string) error {
	if err := (Environments(s)).MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return err
	}
	err := s.store.JoinTokens().Remove(ctx, environmentID, clusterID, id)
	if errors.Is(err, store.ErrNotFound) {
		return fault.New(fault.NotFound, "The cluster has no join token %s", id)
	}
	s.engine.Revoke() // its trust
	return err
}

// joinHash is the stored hash of a secret. The secret has so many bits that a plain hash is safe.
func joinHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

var errJoinUnknown = fault.New(fault.Unauthorized, "The join token is not known: it was deleted, or is not the one that was made. Make another one (burano node token create)")

// RedeemedJoin is a token whose bearer has proved its secret.
type RedeemedJoin struct {
	row store.JoinToken
	// Maker is the maker of the token, in its environment's project: the machine joins on the maker's behalf.
	Maker identity.Caller
}

// ID is the token's.
func (r RedeemedJoin) ID() string { return r.row.ID }

// Cluster returns the cluster that the token is for.
func (r RedeemedJoin) Cluster() (environmentID, clusterID string) {
	return r.row.EnvironmentID, r.row.ClusterID
}

// Open finds the token of a text. All wrong texts get the same fault of kind Unauthorized.
func (s Joins) Open(ctx context.Context, text string) (RedeemedJoin, error) {
	id, secret, _ := strings.Cut(text, ".")
	row, err := s.store.JoinTokens().Get(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return RedeemedJoin{}, err
	}
	same := subtle.ConstantTimeCompare([]byte(joinHash(secret)), []byte(row.Hash)) == 1
	if err != nil || !same {
		return RedeemedJoin{}, errJoinUnknown
	}
	environment, err := s.store.Environments().Head(ctx, row.EnvironmentID)
	if errors.Is(err, store.ErrNotFound) {
		return RedeemedJoin{}, errJoinUnknown
	}
	return RedeemedJoin{row: row, Maker: identity.Caller{UserID: row.UserID, UserName: row.UserName, ProjectID: environment.ProjectID}}, err
}

// MayRedeem returns a fault unless the machine with that host key may join by the token.
func (s Joins) MayRedeem(token RedeemedJoin, hostKey string) error {
	row := token.row
	switch {
	case row.Machine.HostKey != "" && row.Machine.HostKey != hostKey:
		return errJoinTaken()
	case row.Spent != nil:
		return fault.New(fault.Forbidden, "The join token was used: this machine joined by it at %s. Another try needs another token (burano node token create)", row.Spent.Time().Format(time.RFC3339))
	case s.expired(row):
		return fault.New(fault.Forbidden, "The join token expired at %s: make another one (burano node token create)", row.Expires.Time().Format(time.RFC3339))
	}
	return nil
}

func errJoinTaken() error {
	return fault.New(fault.Forbidden, "The join token was used by another machine: each is for one. Make another one (burano node token create)")
}

// Bind records the machine that is to join by a token.
func (s Joins) Bind(ctx context.Context, token RedeemedJoin, machine store.Machine) error {
	err := s.store.JoinTokens().Bind(ctx, token.row.ID, machine)
	if errors.Is(err, store.ErrBusy) {
		return errJoinTaken()
	}
	return joinEnded(err)
}

// joinEnded returns the fault for a token that was deleted, or ended, meanwhile.
func joinEnded(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return errJoinUnknown
	case errors.Is(err, store.ErrEnded):
		return fault.New(fault.Forbidden, "The join token has expired or was used meanwhile: make another one (burano node token create)")
	}
	return err
}

// Start runs the action by which the token's machine joins, with arguments made of the machine. It answers when the task is written, or runs already. While
// the environment is being deployed or deleted, the error is a fault of kind Conflict.
func (s Joins) Start(ctx context.Context, token RedeemedJoin, action string, arguments func(store.Machine) map[string]any) error {
	row := token.row
	if row.Machine.HostKey == "" {
		return fault.New(fault.Invalid, "Say first which machine is to join: POST /burano/v1/join")
	}
	if row.TaskID != "" {
		task, err := s.store.Tasks().State(ctx, row.TaskID)
		if err == nil && (task.Finished == nil || row.Spent != nil) {
			return nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if err := s.MayRedeem(token, row.Machine.HostKey); err != nil {
		return err
	}
	environment, err := s.store.Environments().Peek(ctx, row.EnvironmentID)
	if err == nil && !offers(environment.Model.Objects, row.ClusterID, action) {
		return fault.New(fault.Forbidden, "The cluster that the join token is for is there no more")
	}
	if err == nil {
		_, err = s.store.JoinTokens().Submit(ctx, row, store.Submission{
			Action: store.Action{ObjectID: row.ClusterID, Method: action, Args: arguments(row.Machine)},
			Origin: store.Origin{UserID: row.UserID, UserName: row.UserName},
			Text: fmt.Sprintf("The machine %s (%s) joins by the token that %s made at %s", row.Machine.Node, row.Machine.Address, row.UserName,
				row.Created.Time().Format(time.RFC3339)),
		})
	}
	switch {
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrStale):
		return fault.New(fault.Conflict, "The cluster's environment is being deployed or deleted at the moment: the machine can join when that has ended")
	case errors.Is(err, store.ErrRevoked):
		return fault.New(fault.Forbidden, "What the join token works with was revoked: make another one (burano node token create)")
	case err != nil:
		return joinEnded(err)
	}
	s.engine.Wake()
	return nil
}

// JoinProgress is the progress of a machine that joins by a token: the reports about it, and nothing about others.
type JoinProgress struct {
	Node    string
	State   string // waiting, joining, joined or failed
	Reports []Report
	Last    int64 // the number of the last line that was read
}

// Progress of a machine that joins.
const (
	JoinWaiting = "waiting" // for its start
	JoinRunning = "joining"
	JoinFailed  = "failed" // it may try again
)

// joinLines is how many lines of a log are read together.
const joinLines = 500

// Progress returns the progress of the token's machine, with the lines about it whose number is above after.
func (s Joins) Progress(ctx context.Context, token RedeemedJoin, after int64) (JoinProgress, error) {
	row := token.row
	progress := JoinProgress{Node: row.Machine.Node, State: JoinWaiting, Reports: []Report{}, Last: after}
	if row.TaskID == "" {
		return progress, nil
	}
	task, err := s.store.Tasks().State(ctx, row.TaskID)
	if errors.Is(err, store.ErrNotFound) {
		return progress, errJoinUnknown
	}
	if err != nil {
		return progress, err
	}
	reports, err := s.store.Reports().List(ctx, row.TaskID, after, joinLines)
	if err != nil {
		return progress, err
	}
	about := aboutNode(row.Machine.Node)
	for _, report := range reports {
		progress.Last = report.Number
		if report.Number == 1 || about.MatchString(report.Text) {
			progress.Reports = append(progress.Reports, Report{Number: report.Number, Level: report.Level, Text: report.Text, Created: report.Created.Time()})
		}
	}
	switch {
	case task.Finished == nil || len(reports) == joinLines: // or there is more to read
		progress.State = JoinRunning
	case row.Spent != nil:
		progress.State = JoinDone
	default:
		progress.State = JoinFailed
	}
	return progress, nil
}

// aboutNode matches lines of a log that are about a node: its name and a colon, at the beginning or within an error.
func aboutNode(node string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[\s:])` + regexp.QuoteMeta(node) + `: `)
}

// offers reports whether an object of a model has an action that may be called.
func offers(model map[string]any, objectID, method string) bool {
	object, _ := objectOf(model, objectID).(map[string]any)
	header, _ := object["?"].(map[string]any)
	actions, _ := header["_actions"].(map[string]any)
	for _, one := range actions {
		action, _ := one.(map[string]any)
		if enabled, said := action["enabled"].(bool); action["name"] == method && (enabled || !said) {
			return true
		}
	}
	return false
}
