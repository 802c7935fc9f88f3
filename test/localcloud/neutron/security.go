package neutron

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// SecurityGroup is a security group as the API shows it.
type SecurityGroup struct {
	Common
	Stateful bool                `json:"stateful"`
	Shared   bool                `json:"shared"`
	Rules    []SecurityGroupRule `json:"security_group_rules"`
}

// SecurityGroupRule is one rule as the API shows it. Unset ports and fields are null.
type SecurityGroupRule struct {
	Common
	SecurityGroupID      string `json:"security_group_id"`
	Direction            string `json:"direction"` // ingress or egress
	EtherType            string `json:"ethertype"` // IPv4 or IPv6
	Protocol             OrNull `json:"protocol"`
	PortRangeMin         *int   `json:"port_range_min"`
	PortRangeMax         *int   `json:"port_range_max"`
	RemoteIPPrefix       OrNull `json:"remote_ip_prefix"`
	RemoteGroupID        OrNull `json:"remote_group_id"`
	RemoteAddressGroupID OrNull `json:"remote_address_group_id"`
	NormalizedCIDR       OrNull `json:"normalized_cidr"`
}

// SecurityGroupRequest makes or changes a group.
type SecurityGroupRequest struct {
	Owner
	Name        *string `json:"name"`
	Description *string `json:"description"`
	Stateful    *bool   `json:"stateful"`
}

// SecurityGroupRuleRequest makes a rule. Protocol is a name or a number, also as JSON number.
type SecurityGroupRuleRequest struct {
	Owner
	SecurityGroupID      string  `json:"security_group_id"`
	Direction            string  `json:"direction"`
	EtherType            string  `json:"ethertype"`
	Protocol             any     `json:"protocol"`
	PortRangeMin         *int    `json:"port_range_min"`
	PortRangeMax         *int    `json:"port_range_max"`
	RemoteIPPrefix       *string `json:"remote_ip_prefix"`
	RemoteGroupID        *string `json:"remote_group_id"`
	RemoteAddressGroupID *string `json:"remote_address_group_id"`
	Description          *string `json:"description"`
}

// SecurityGroups lists a project's groups; its default group is made when it is first looked for.
func (s *Service) SecurityGroups(projectID string) (found []SecurityGroup) {
	if projectID != "" {
		s.mutex.Lock()
		if _, err := s.defaultGroup(projectID); err != nil {
			s.logger.Error("make default security group", "project", projectID, "error", err)
		}
		s.mutex.Unlock()
	}
	for _, group := range s.securityGroups.All() {
		if group.belongs(projectID) {
			found = append(found, group)
		}
	}
	return found
}

// GetSecurityGroup returns a group of the project.
func (s *Service) GetSecurityGroup(_ context.Context, projectID, id string) (SecurityGroup, error) {
	group, ok := s.securityGroups.Get(id)
	if !ok || !group.belongs(projectID) {
		return SecurityGroup{}, notFound("SecurityGroup", "Security group", id)
	}
	return group, nil
}

// defaultGroup returns, or makes, the group of ports for which none is named. The caller holds the lock.
func (s *Service) defaultGroup(projectID string) (SecurityGroup, error) {
	for _, group := range s.securityGroups.All() {
		if group.Name == "default" && group.ProjectID == projectID {
			return group, nil
		}
	}
	group := s.newGroup("", projectID, "default")
	group.Description = "Default security group"
	for _, etherType := range []string{"IPv4", "IPv6"} {
		group.Rules = append(group.Rules, SecurityGroupRule{Common: s.common("", projectID, ""), SecurityGroupID: group.ID, Direction: "ingress", EtherType: etherType, RemoteGroupID: OrNull(group.ID)})
	}
	return group, s.securityGroups.Put(group.ID, group)
}

// newGroup has the rules every new group has: everything may go out.
func (s *Service) newGroup(id, projectID, name string) SecurityGroup {
	group := SecurityGroup{Common: s.common(id, projectID, name), Stateful: true}
	group.RevisionNumber = 1
	for _, etherType := range []string{"IPv4", "IPv6"} {
		group.Rules = append(group.Rules, SecurityGroupRule{Common: s.common("", projectID, ""), SecurityGroupID: group.ID, Direction: "egress", EtherType: etherType})
	}
	return group
}

// CreateSecurityGroup makes a group of the project.
func (s *Service) CreateSecurityGroup(_ context.Context, projectID string, request SecurityGroupRequest) (SecurityGroup, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if group, ok := s.securityGroups.Get(request.ID); ok && group.belongs(projectID) {
		return group, nil
	}
	if request.Name == nil {
		return SecurityGroup{}, problem(400, "HTTPBadRequest", "Failed to parse request. Required attribute 'name' not specified")
	}
	if *request.Name == "default" {
		return SecurityGroup{}, conflict("SecurityGroupDefaultAlreadyExists", "Default security group already exists.")
	}
	if err := s.checkQuota(projectID, quotaGroup); err != nil {
		return SecurityGroup{}, err
	}
	group := s.newGroup(request.ID, projectID, *request.Name)
	set(&group.Description, request.Description)
	set(&group.Stateful, request.Stateful)
	return group, s.securityGroups.Put(group.ID, group)
}

// UpdateSecurityGroup changes a group of the project.
func (s *Service) UpdateSecurityGroup(ctx context.Context, projectID, id string, request SecurityGroupRequest) (SecurityGroup, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	group, err := s.GetSecurityGroup(ctx, projectID, id)
	if err != nil {
		return SecurityGroup{}, err
	}
	if group.Name == "default" && request.Name != nil && *request.Name != "default" {
		return SecurityGroup{}, conflict("SecurityGroupCannotUpdateDefault", "Updating default security group not allowed.")
	}
	set(&group.Stateful, request.Stateful)
	s.changed(&group.Common, request.Name, request.Description)
	return group, s.securityGroups.Put(id, group)
}

// DeleteSecurityGroup removes a group that no port uses.
func (s *Service) DeleteSecurityGroup(ctx context.Context, projectID, id string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	group, err := s.GetSecurityGroup(ctx, projectID, id)
	if err != nil {
		return err
	}
	if group.Name == "default" && projectID != "" {
		return conflict("SecurityGroupCannotRemoveDefault", "Insufficient rights for removing default security group.")
	}
	if slices.ContainsFunc(s.ports.All(), func(p Port) bool { return slices.Contains(p.SecurityGroups, id) }) {
		return conflict("SecurityGroupInUse", "Security Group %s in use.", id)
	}
	_, err = s.securityGroups.Delete(id)
	return err
}

// SecurityGroupRules lists the rules of a project's groups.
func (s *Service) SecurityGroupRules(projectID string) (found []SecurityGroupRule) {
	for _, group := range s.SecurityGroups(projectID) {
		found = append(found, group.Rules...)
	}
	return found
}

// GetSecurityGroupRule returns a rule of one of the project's groups.
func (s *Service) GetSecurityGroupRule(_ context.Context, projectID, id string) (SecurityGroupRule, error) {
	for _, rule := range s.SecurityGroupRules(projectID) {
		if rule.ID == id {
			return rule, nil
		}
	}
	return SecurityGroupRule{}, notFound("SecurityGroupRule", "Security group rule", id)
}

// CreateSecurityGroupRule adds a rule to a group of the project.
func (s *Service) CreateSecurityGroupRule(ctx context.Context, projectID string, request SecurityGroupRuleRequest) (SecurityGroupRule, error) {
	rule, err := s.createRule(ctx, projectID, request)
	if err != nil {
		return SecurityGroupRule{}, err
	}
	return rule, s.applyGuards(ctx)
}

func (s *Service) createRule(ctx context.Context, projectID string, request SecurityGroupRuleRequest) (SecurityGroupRule, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	group, err := s.GetSecurityGroup(ctx, projectID, request.SecurityGroupID)
	if err != nil {
		return SecurityGroupRule{}, err
	}
	if at := slices.IndexFunc(group.Rules, func(r SecurityGroupRule) bool { return request.ID != "" && r.ID == request.ID }); at >= 0 {
		return group.Rules[at], nil
	}
	if err := s.checkQuota(group.ProjectID, quotaRule); err != nil {
		return SecurityGroupRule{}, err
	}
	rule, err := s.newRule(ctx, group, projectID, request)
	if err != nil {
		return SecurityGroupRule{}, err
	}
	for _, other := range group.Rules {
		if other.means() == rule.means() {
			return SecurityGroupRule{}, conflict("SecurityGroupRuleExists", "Security group rule already exists. Rule id is %s.", other.ID)
		}
	}
	group.Rules = append(group.Rules, rule)
	s.changed(&group.Common, nil, nil)
	return rule, s.securityGroups.Put(group.ID, group)
}

func (s *Service) newRule(ctx context.Context, group SecurityGroup, projectID string, request SecurityGroupRuleRequest) (SecurityGroupRule, error) {
	rule := SecurityGroupRule{Common: s.common(request.ID, group.ProjectID, ""), SecurityGroupID: group.ID, Direction: request.Direction, EtherType: request.EtherType, PortRangeMin: request.PortRangeMin, PortRangeMax: request.PortRangeMax}
	if rule.Direction != "ingress" && rule.Direction != "egress" {
		return rule, invalid("'%s' is not in ['ingress', 'egress']", rule.Direction)
	}
	if rule.EtherType == "" {
		rule.EtherType = "IPv4"
	}
	if rule.EtherType != "IPv4" && rule.EtherType != "IPv6" {
		return rule, problem(400, "SecurityGroupRuleInvalidEtherType", "Security group rule for ethertype '%s' not supported. Allowed values are ['IPv4', 'IPv6'].", rule.EtherType)
	}
	protocol, err := protocolName(request.Protocol)
	if err != nil {
		return rule, err
	}
	rule.Protocol = OrNull(protocol)
	if err := checkPorts(rule); err != nil {
		return rule, err
	}
	if request.RemoteIPPrefix != nil && *request.RemoteIPPrefix != "" {
		text := *request.RemoteIPPrefix
		if address, err := netip.ParseAddr(text); err == nil {
			text = netip.PrefixFrom(address, address.BitLen()).String()
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return rule, invalid("'%s' is not a valid IP subnet", *request.RemoteIPPrefix)
		}
		if prefix.Addr().Is4() != (rule.EtherType == "IPv4") {
			return rule, problem(400, "SecurityGroupRuleParameterConflict", "Conflicting value ethertype %s for CIDR %s", rule.EtherType, text)
		}
		rule.RemoteIPPrefix, rule.NormalizedCIDR = OrNull(text), OrNull(prefix.Masked().String())
	}
	if request.RemoteGroupID != nil && *request.RemoteGroupID != "" {
		if rule.RemoteIPPrefix != "" {
			return rule, problem(400, "SecurityGroupMultipleRemoteEntites", "Only remote_ip_prefix or remote_group_id may be provided.")
		}
		if _, err := s.GetSecurityGroup(ctx, projectID, *request.RemoteGroupID); err != nil {
			return rule, err
		}
		rule.RemoteGroupID = OrNull(*request.RemoteGroupID)
	}
	set(&rule.Description, request.Description)
	return rule, nil
}

func protocolName(value any) (string, error) {
	text := ""
	switch value := value.(type) {
	case nil:
		return "", nil
	case string:
		text = strings.ToLower(value)
	case float64:
		text = strconv.Itoa(int(value))
	}
	if text == "" || text == "any" {
		return "", nil
	}
	if _, known := protocols[text]; known {
		return text, nil
	}
	if number, err := strconv.Atoi(text); err == nil && number >= 0 && number <= 255 {
		return text, nil
	}
	known := append(slices.Sorted(maps.Keys(protocols)), "any")
	return "", problem(400, "SecurityGroupRuleInvalidProtocol", "Security group rule protocol %v not supported. Only protocol values %v and integer representations [0 to 255] are supported.", value, known)
}

// number is the rule's protocol number in a packet, 0 for any.
func (r SecurityGroupRule) number() uint8 {
	if number, known := protocols[string(r.Protocol)]; known {
		return number
	}
	number, _ := strconv.ParseUint(string(r.Protocol), 10, 8) // "" is any
	return uint8(number)
}

func checkPorts(rule SecurityGroupRule) error {
	low, high := rule.PortRangeMin, rule.PortRangeMax
	if low == nil && high == nil {
		return nil
	}
	switch rule.number() {
	case protocols["tcp"], protocols["udp"], protocols["sctp"], protocols["dccp"], protocols["udplite"]:
		if low == nil || high == nil || *low > *high || *low < 1 || *high > 65535 {
			return problem(400, "SecurityGroupInvalidPortRange", "For TCP/UDP protocols, port_range_min must be <= port_range_max, both between 1 and 65535")
		}
	case protocols["icmp"], protocols["icmpv6"]:
		for name, value := range map[string]*int{"port_range_min": low, "port_range_max": high} {
			if value != nil && (*value < 0 || *value > 255) {
				return problem(400, "SecurityGroupInvalidIcmpValue", "Invalid value for ICMP %s (%d). It must be 0 to 255.", name, *value)
			}
		}
		if low == nil {
			return problem(400, "SecurityGroupMissingIcmpType", "ICMP code (port-range-max) %d is provided but ICMP type (port-range-min) is missing.", *high)
		}
	case 0:
		return problem(400, "SecurityGroupProtocolRequiredWithPorts", "Must also specify protocol if port range is given.")
	default:
		return problem(400, "SecurityGroupInvalidProtocolForPort", "Invalid protocol %s for port range, only supported for TCP, UDP, UDPLITE, SCTP and DCCP.", rule.Protocol)
	}
	return nil
}

// means returns the rule without the fields in which equal rules differ.
func (r SecurityGroupRule) means() string {
	number := func(n *int) int {
		if n == nil {
			return -1
		}
		return *n
	}
	return fmt.Sprint(r.Direction, r.EtherType, r.Protocol, number(r.PortRangeMin), number(r.PortRangeMax), r.NormalizedCIDR, r.RemoteGroupID)
}

// UpdateSecurityGroupRule always fails: Neutron's rules do not change.
func (s *Service) UpdateSecurityGroupRule(context.Context, string, string, SecurityGroupRuleRequest) (SecurityGroupRule, error) {
	return SecurityGroupRule{}, problem(400, "HTTPBadRequest", "Security group rules cannot be updated; delete the rule and make another one.")
}

// DeleteSecurityGroupRule removes a rule from a group of the project.
func (s *Service) DeleteSecurityGroupRule(ctx context.Context, projectID, id string) error {
	if err := s.deleteRule(projectID, id); err != nil {
		return err
	}
	return s.applyGuards(ctx)
}

func (s *Service) deleteRule(projectID, id string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, group := range s.securityGroups.All() {
		at := slices.IndexFunc(group.Rules, func(r SecurityGroupRule) bool { return r.ID == id })
		if at >= 0 && group.belongs(projectID) {
			group.Rules = slices.Delete(group.Rules, at, at+1)
			s.changed(&group.Common, nil, nil)
			return s.securityGroups.Put(group.ID, group)
		}
	}
	return notFound("SecurityGroupRule", "Security group rule", id)
}
