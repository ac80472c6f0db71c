<?php

declare(strict_types=1);

namespace App\Controller;

use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\RequestStack;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Routing\Attribute\Route;
use Symfony\Component\Security\Http\Authentication\AuthenticationUtils;
use Symfony\Contracts\HttpClient\HttpClientInterface;

final class HomeController extends AbstractController
{
    #[Route('/', name: 'home', methods: ['GET'])]
    public function home(): Response
    {
        return $this->render('home.html.twig');
    }

    #[Route('/login', name: 'login', methods: ['GET', 'POST'])]
    public function login(AuthenticationUtils $login): Response
    {
        return $this->render('login.html.twig', ['user' => $login->getLastUsername(), 'error' => $login->getLastAuthenticationError()]);
    }

    /** Waits for a slow API, and tells what it knows of its request before and after. */
    #[Route('/quote', name: 'quote', methods: ['GET'])]
    public function quote(Request $request, RequestStack $requests, HttpClientInterface $http, string $api): JsonResponse
    {
        $before = [$this->getUser()?->getUserIdentifier(), $request->query->get('tag')];
        $quote = $http->request('GET', "$api/quote", ['query' => ['tag' => $request->query->get('tag')]])->toArray();
        $current = $requests->getCurrentRequest();

        return $this->json([
            'quote' => $quote['quote'],
            'before' => $before,
            'after' => [$this->getUser()?->getUserIdentifier(), $current?->query->get('tag')],
            'session' => $requests->getSession()->get('_security.last_username'),
        ]);
    }
}
