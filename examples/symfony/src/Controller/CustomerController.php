<?php

declare(strict_types=1);

namespace App\Controller;

use App\Entities;
use App\Entity\Customer;
use App\Form\CustomerType;
use App\Message\Welcome;
use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\Form\FormInterface;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Routing\Attribute\Route;

final class CustomerController extends AbstractController
{
    public function __construct(private readonly Entities $entities)
    {
    }

    #[Route('/customers', name: 'customers', methods: ['GET'])]
    public function list(): Response
    {
        return $this->render('customers/list.html.twig', ['customers' => $this->entities->manager()->getRepository(Customer::class)->findBy([], ['id' => 'ASC'])]);
    }

    #[Route('/customers/new', name: 'customers_new', methods: ['GET', 'POST'])]
    public function create(Request $request, MessageBusInterface $messages): Response
    {
        $customer = new Customer();
        $form = $this->createForm(CustomerType::class, $customer)->handleRequest($request);
        if ($form->isSubmitted() && $form->isValid()) {
            $customer->createdBy = $this->getUser()?->getUserIdentifier() ?? '';
            $this->entities->manager()->persist($customer);
            $this->entities->manager()->flush();
            $messages->dispatch(new Welcome((int) $customer->id));
            $this->addFlash('notice', "$customer->name was added");

            return $this->redirectToRoute('customers', [], Response::HTTP_SEE_OTHER);
        }

        return $this->form($form, 'New customer');
    }

    #[Route('/customers/{id<\d+>}', name: 'customers_edit', methods: ['GET', 'POST'])]
    public function edit(int $id, Request $request): Response
    {
        $customer = $this->customer($id);
        $form = $this->createForm(CustomerType::class, $customer)->handleRequest($request);
        if ($form->isSubmitted() && $form->isValid()) {
            $this->entities->manager()->flush();

            return $this->redirectToRoute('customers', [], Response::HTTP_SEE_OTHER);
        }

        return $this->form($form, "Customer $id");
    }

    #[Route('/customers/{id<\d+>}/delete', name: 'customers_delete', methods: ['POST'])]
    public function delete(int $id, Request $request): Response
    {
        if (!$this->isCsrfTokenValid("delete-$id", (string) $request->request->get('_token'))) {
            throw $this->createAccessDeniedException('The form has expired.');
        }
        $this->entities->manager()->remove($this->customer($id));
        $this->entities->manager()->flush();

        return $this->redirectToRoute('customers', [], Response::HTTP_SEE_OTHER);
    }

    /** As `renderForm()` does, which exists from Symfony 5.3 to 6.4 only. */
    private function form(FormInterface $form, string $title): Response
    {
        $status = $form->isSubmitted() ? Response::HTTP_UNPROCESSABLE_ENTITY : Response::HTTP_OK;

        return $this->render('customers/form.html.twig', ['form' => $form->createView(), 'title' => $title], new Response(status: $status));
    }

    private function customer(int $id): Customer
    {
        return $this->entities->manager()->find(Customer::class, $id) ?? throw $this->createNotFoundException("There is no customer $id");
    }
}
