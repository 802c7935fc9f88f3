package store

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/fault"
)

// JoinToken lets one machine become a node of a cluster: the first one that redeems it.
type JoinToken struct {
	ID            string
	EnvironmentID string
	ClusterID     string // the object's
	Hash          string // of its secret
	DelegationID  string // the delegation for the join
	UserID        string // the user who made it
	UserName      string
	Created       Time
	Expires       Time
	Machine       Machine `gorm:"embedded"` // the machine that has redeemed it; the zero value while none has
	TaskID        string  // of the last try to join; "" before the first
	Spent         *Time   // the time of the machine's join
}

// Machine is a machine outside of the cloud that is to become a node.
type Machine struct {
	Node    string // the desired name of the node
	Address string // its own
	Port    int64  // of its sshd
	Login   string // the user that Burano logs in as
	HostKey string // its public host key, which identifies a machine
}

const (
	// joinTokensKept is how long tokens stay after their end, for machines that still ask for the result.
	joinTokensKept = 24 * time.Hour
	// mostJoinTokens is how many redeemable tokens an environment may have: each may have a trust in Keystone.
	mostJoinTokens = 100
)

// JoinTokens keeps the tokens by which machines join clusters.
type JoinTokens struct{ *handle }

// JoinTokens are the tokens by which machines join clusters.
func (s *Store) JoinTokens() JoinTokens { return JoinTokens{s.handle} }

// redeemable selects tokens with which a machine may still join.
func (s JoinTokens) redeemable(query *gorm.DB) *gorm.DB {
	return query.Where("spent IS NULL AND expires > ?", s.clock())
}

// Add stores a token; its id and time of making are set here. Tokens that have ended long ago are deleted on this occasion. If the
// environment has too many, the error is a fault of kind Conflict.
func (s JoinTokens) Add(ctx context.Context, token *JoinToken) error {
	token.ID, token.Created = NewID(), s.clock()
	return s.transaction(ctx, "keep a join token", func(tx *gorm.DB) error {
		if err := locked(tx).Select("id").Where("id = ?", token.EnvironmentID).Take(&Environment{}).Error; err != nil {
			return err
		}
		if err := tx.Where("expires <= ?", s.clock()-Time(joinTokensKept.Microseconds())).Delete(&JoinToken{}).Error; err != nil {
			return err
		}
		var open int64
		if err := s.redeemable(tx.Model(&JoinToken{})).Where("environment_id = ?", token.EnvironmentID).Count(&open).Error; err != nil {
			return err
		}
		if open >= mostJoinTokens {
			return fault.New(fault.Conflict, "Environment %s has %d join tokens that can be redeemed, which is the limit: delete some, or wait until they have expired", token.EnvironmentID, open)
		}
		return tx.Create(token).Error
	})
}

// Get returns a token, or ErrNotFound.
func (s JoinTokens) Get(ctx context.Context, id string) (JoinToken, error) {
	return readOne[JoinToken](s.rows(ctx).Where("id = ?", id), "read a join token")
}

// List lists the tokens of a cluster, oldest first.
func (s JoinTokens) List(ctx context.Context, environmentID, clusterID string) ([]JoinToken, error) {
	return readAll[JoinToken](s.rows(ctx).Where("environment_id = ? AND cluster_id = ?", environmentID, clusterID).Order("created, id"), "list join tokens")
}

// Remove removes a token of a cluster, or returns ErrNotFound. A join that has begun with it goes on.
func (s JoinTokens) Remove(ctx context.Context, environmentID, clusterID, id string) error {
	return wrap(affected(s.rows(ctx).Where("id = ? AND environment_id = ? AND cluster_id = ?", id, environmentID, clusterID).Delete(&JoinToken{})), "remove a join token")
}

// Bind records the machine that redeems a token. ErrBusy when another one has, ErrEnded when the token has
// ended.
func (s JoinTokens) Bind(ctx context.Context, id string, machine Machine) error {
	return s.transaction(ctx, "bind a join token", func(tx *gorm.DB) error {
		token, err := s.lock(tx, id)
		if err != nil {
			return err
		}
		if token.Machine.HostKey != "" && token.Machine.HostKey != machine.HostKey {
			return ErrBusy
		}
		return tx.Model(&JoinToken{}).Where("id = ?", id).Updates(map[string]any{"node": machine.Node, "address": machine.Address, "port": machine.Port, "login": machine.Login,
			"host_key": machine.HostKey}).Error
	})
}

// lock reads a token that can be redeemed; ErrEnded for one that cannot.
func (s JoinTokens) lock(tx *gorm.DB, id string) (token JoinToken, err error) {
	if err = locked(tx).Where("id = ?", id).Take(&token).Error; err == nil && (token.Spent != nil || token.Expires <= s.clock()) {
		err = ErrEnded
	}
	return token, err
}

// Submit is Tasks.SubmitAction for the machine that has redeemed a token, in the token's environment and with its delegation. ErrEnded when the token
// can be redeemed no more.
func (s JoinTokens) Submit(ctx context.Context, token JoinToken, submission Submission) (Task, error) {
	var task Task
	err := s.transaction(ctx, "submit what a machine joins by", func(tx *gorm.DB) error {
		session, err := Sessions(s).open(tx, token.EnvironmentID, token.UserID) // locks the environment
		if err != nil {
			return err
		}
		now, err := s.lock(tx, token.ID)
		if err != nil {
			return err
		}
		submission.DelegationID = now.DelegationID
		if task, err = (Tasks(s)).submit(tx, session, submission, ForClasses(token.EnvironmentID, session.Model.Objects)); err != nil {
			return err
		}
		return tx.Model(&JoinToken{}).Where("id = ?", token.ID).Update("task_id", task.ID).Error
	})
	return task, err
}
