/*
 * Binds the datagram socket argv[1], says so by a line, and prints what arrives until a datagram has a
 * line that argv[2] names, or ten seconds are over. A service manager for tests.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WAIT_MS 10000

int main(int argc, char **argv)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char text[1024];

    if (argc != 3 || strlen(argv[1]) >= sizeof(addr.sun_path))
        return 2;
    strcpy(addr.sun_path, argv[1]);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        perror(argv[1]);
        return 2;
    }
    puts("listening");
    fflush(stdout);
    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, WAIT_MS) <= 0)
            return 1;
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
        if (n < 0)
            return 2;
        text[n] = '\0';
        puts(text);
        fflush(stdout);
        if (strstr(text, argv[2]))
            return 0;
    }
}
