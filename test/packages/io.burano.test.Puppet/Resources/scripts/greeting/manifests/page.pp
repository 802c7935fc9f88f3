# A page, and the service that serves it.
class greeting::page {
  include greeting

  class { 'stamp':
    folder => '/srv/greeting',
  }
  file {
    '/srv/greeting':
      ensure => directory;
    '/srv/greeting/page':
      content => epp('greeting/page.epp', { 'text' => $greeting::text });
    '/srv/greeting/answer.sh':
      source => 'puppet:///modules/greeting/answer.sh',
      mode   => '0755';
    '/etc/systemd/system/greeting.service':
      content => "[Service]\nExecStart=/usr/bin/socat TCP-LISTEN:${greeting::port},fork,reuseaddr EXEC:/srv/greeting/answer.sh\n",
      notify  => Service['greeting'];
  }
  service { 'greeting':
    ensure  => running,
    require => File['/srv/greeting/page', '/srv/greeting/answer.sh'],
  }
}
